import { parseRateBps } from '../../../core/units.js';
import type { FaultActionKind } from '../fault-action.js';
import type { DelayCounters } from './delay.js';

export const rate: FaultActionKind<keyof DelayCounters> = {
  name: 'rate',
  form: 'rate=100Mbps',
  example: 'rate=1Mbps',
  does: 'sends matching packets one after another at this rate, in bits from BTH to ICRC',
  counter: 'faults_delayed',
  parse: (values) => {
    const rateBps = values.length === 1 ? parseRateBps(values[0]) : 0;
    if (!(rateBps > 0)) return undefined;
    return () => {
      let freeNs = 0; // when all packets before this one have left
      return {
        decide(fate, nowNs) {
          freeNs = Math.max(freeNs, nowNs) + (fate.bytes * 8e9) / rateBps;
          fate.delayNs = freeNs - nowNs;
        },
      };
    };
  },
};
