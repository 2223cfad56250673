import type { FaultActionKind } from '../fault-action.js';
import { changeField, hasField, parseFieldChange } from '../rewrite.js';

export interface RewriteCounters {
  /** Frames in which a fault rule rewrote a field. */
  faults_rewritten: number;
}

export const rewriteField: FaultActionKind<keyof RewriteCounters> = {
  name: 'rewrite',
  form: 'rewrite=FIELD,VALUE',
  example: 'rewrite=psn,9',
  does: 'changes a field: `16` or `0x10` stores, `+1` and `-1` add',
  counter: 'faults_rewritten',
  changesBytes: true,
  repeats: true,
  parse: (values) => {
    if (values.length !== 2) return undefined;
    const change = parseFieldChange(values[0], values[1]);
    return () => ({
      appliesTo: ({ opcode }) => hasField(opcode, change.field),
      change(packet, bth) {
        changeField(change, packet.bytes, bth, packet.offset + packet.length - bth);
        return true;
      },
    });
  },
};
