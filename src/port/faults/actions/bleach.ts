import { ECN_NOT_ECT } from '../../../packet/ecn.js';
import { type FaultActionKind, withoutValues } from '../fault-action.js';

export interface BleachCounters {
  /** Frames whose ECN codepoint a fault rule cleared. */
  faults_bleached: number;
}

export const bleach: FaultActionKind<keyof BleachCounters> = {
  name: 'bleach',
  form: 'bleach',
  example: 'bleach',
  does: 'clears the ECN codepoint: earlier marks are lost, and later switches cannot mark it',
  counter: 'faults_bleached',
  conflict: (others) => (others.includes('mark') ? 'marks the packet and clears the mark' : undefined),
  parse: withoutValues({
    change(packet) {
      packet.ecn = ECN_NOT_ECT;
      return true;
    },
  }),
};
