import type { FaultActionKind } from '../fault-action.js';
import { integer } from '../numbers.js';
import type { DelayCounters } from './delay.js';

/** A held-back packet occupies memory until it is let go. */
const BEHIND_MAX = 1024;
const BEHIND = 3;

export const reorder: FaultActionKind<keyof DelayCounters> = {
  name: 'reorder',
  form: 'reorder[=BEHIND]',
  example: 'reorder=2',
  does: 'holds it until BEHIND others have passed (default 3, at most 1024)',
  counter: 'faults_delayed',
  randomForm: 'reorder=0.001[,BEHIND]',
  conflict: (others) =>
    others.includes('delay') || others.includes('rate')
      ? 'makes a packet wait for others and for time: use reorder, or delay and rate'
      : undefined,
  parse: (values) => {
    const behind = values.length === 0 ? BEHIND : integer(values[0], 1, BEHIND_MAX);
    if (behind === undefined || values.length > 1) return undefined;
    return () => ({
      decide(fate) {
        fate.behind = behind;
      },
    });
  },
};
