/** The first Ctrl-C ends commands: one phase of each, and every phase of `bw write`. `test/soak/ctrl-c.long.ts` has the others. */

import { type Case, endsBySignal } from './ctrl-c-cases.js';

const seen = new Set<string>();

/** The first case of each command, in the order of the list; they differ in their phase. */
function isFirstOfItsCommand({ what }: Case): boolean {
  const isFirst = !seen.has(what);
  seen.add(what);
  return isFirst;
}

endsBySignal('SIGINT', (one) => isFirstOfItsCommand(one) || one.what === 'bw write');
