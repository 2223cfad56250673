import type { FaultActionKind } from '../fault-action.js';
import { integer } from '../numbers.js';

export interface TrimCounters {
  /** Frames trimmed by a fault rule. */
  faults_trimmed: number;
}

/** The default leaves all headers. */
const BYTES = 64;
const BYTES_MIN = 12;
const BYTES_MAX = 65_535;

export const trim: FaultActionKind<keyof TrimCounters> = {
  name: 'trim',
  form: 'trim[=BYTES]',
  example: 'trim=20',
  does: 'keeps the first BYTES bytes from the BTH on (default 64), as trimming switches do',
  counter: 'faults_trimmed',
  changesBytes: true,
  parse: (values) => {
    const left = values.length === 0 ? BYTES : integer(values[0], BYTES_MIN, BYTES_MAX);
    if (left === undefined || values.length > 1) return undefined;
    return () => ({
      decide(fate) {
        fate.bytes = Math.min(fate.bytes, left);
      },
      change(packet, bth) {
        const length = bth - packet.offset + left;
        if (length >= packet.length) return false;
        packet.length = length;
        return true;
      },
    });
  },
};
