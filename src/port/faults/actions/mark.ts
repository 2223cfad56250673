import { ECN_CE } from '../../../packet/ecn.js';
import { type FaultActionKind, withoutValues } from '../fault-action.js';

export interface MarkCounters {
  /** Frames that a fault rule marked CE; not part of `tx_ecn_marked`. */
  faults_marked: number;
}

export const mark: FaultActionKind<keyof MarkCounters> = {
  name: 'mark',
  form: 'mark',
  example: 'mark',
  does: 'sets ECN CE',
  counter: 'faults_marked',
  parse: withoutValues({
    change(packet) {
      packet.ecn = ECN_CE;
      return true;
    },
  }),
};
