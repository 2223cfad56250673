import { randomInt } from '../../../core/random.js';
import type { FaultActionKind } from '../fault-action.js';

export interface CorruptCounters {
  /** Frames a fault rule flipped bits in. */
  faults_corrupted: number;
}

/** The ICRC does not cover this byte of the BTH, so that flipping a bit there would be no fault. */
const UNCOVERED_BYTE = 4;

export const corrupt: FaultActionKind<keyof CorruptCounters> = {
  name: 'corrupt',
  form: 'corrupt',
  example: 'corrupt',
  does: 'flips one bit that the ICRC covers',
  counter: 'faults_corrupted',
  randomForm: 'corrupt=0.001',
  changesBytes: true,
  parse: (values) => {
    if (values.length > 0) return undefined;
    return ({ plan }) => {
      let flipped = 0; // counted from the first bit of the BTH
      return {
        decide({ bytes }) {
          const bit = randomInt(plan, 0, 8 * (bytes - 1) - 1);
          flipped = bit < 8 * UNCOVERED_BYTE ? bit : bit + 8;
        },
        change({ bytes }, bth) {
          bytes[bth + (flipped >> 3)] ^= 0x80 >> (flipped & 7);
          return true;
        },
      };
    };
  },
};
