/**
 * The two ends of a game whose packets are lost now and then. One ends as soon as it has everything, and then nobody is left who would acknowledge the last message of the
 * other one again. No requester can tell that from a message that was lost; who has both ends before him can.
 */

import type { CommandResult } from './command.js';

const UNACKNOWLEDGED = /transport retry counter exceeded/;

/** What a failure says if nothing was lost for good but the last acknowledgement. */
export const LAST_ACKNOWLEDGEMENT = 'only the acknowledgement of the last message was lost';

/**
 * Throws unless both ends have ended well. The error says {@link LAST_ACKNOWLEDGEMENT} where one has: so all that was sent to it is there, and all that it sent was acknowledged;
 * and the other one says that a message of its own was not.
 */
export function expectBothDone(ours: CommandResult, theirs: CommandResult): void {
  if (ours.exitCode === 0 && theirs.exitCode === 0) return;
  const lacks = (one: CommandResult) => UNACKNOWLEDGED.test(one.stdout + one.stderr);
  const isLast = (ours.exitCode === 0 && lacks(theirs)) || (theirs.exitCode === 0 && lacks(ours));
  const said = ({ exitCode, stdout, stderr }: CommandResult) => `exit code ${exitCode}\n${stdout}${stderr}`;
  throw new Error(
    `${isLast ? LAST_ACKNOWLEDGEMENT : 'an end has failed'}\nours: ${said(ours)}\ntheirs: ${said(theirs)}`,
  );
}
