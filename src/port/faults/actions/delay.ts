import { randomUnit } from '../../../core/random.js';
import { parseDurationNs } from '../../../core/units.js';
import type { FaultActionKind } from '../fault-action.js';

/** Counters of `delay`, `rate` and `reorder`. */
export interface DelayCounters {
  /** Frames a fault rule held back, for other frames or for a time. */
  faults_delayed: number;
}

export const delay: FaultActionKind<keyof DelayCounters> = {
  name: 'delay',
  form: 'delay=TIME[,JITTER]',
  example: 'delay=1ms',
  does: 'holds it for this time, plus or minus up to JITTER, uniformly distributed',
  counter: 'faults_delayed',
  parse: (values) => {
    if (values.length < 1 || values.length > 2) return undefined;
    const timeNs = parseDurationNs(values[0]);
    const jitterNs = values.length > 1 ? parseDurationNs(values[1]) : 0;
    if (jitterNs > timeNs) throw new Error('has a jitter above its delay: a packet cannot leave before it came');
    return ({ rule }) => ({
      decide(fate) {
        const jitter = jitterNs === 0 ? 0 : (2 * randomUnit(rule) - 1) * jitterNs;
        fate.delayNs = Math.max(fate.delayNs, 0) + timeNs + jitter;
      },
    });
  },
};
