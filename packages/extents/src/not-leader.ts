/** The refusal of a manager that does not lead; it names the leader if known. */

import { RpcError } from '@rocev2/rpc';
import { codeOf } from './messages.js';

const LEADER = 'the leader is at ';

/** Nothing of the request has been done that a repetition would not find. */
export function notLeader(address: string, leader: string | undefined): RpcError {
  const where = leader === undefined || leader === address ? 'there is no other one yet' : LEADER + leader;
  return new RpcError('NOT_LEADER', `the manager at ${address} does not lead; ${where}`);
}

export function isNotLeader(error: unknown): boolean {
  return codeOf(error) === 'NOT_LEADER';
}

export function leaderIn(error: unknown): string | undefined {
  const { message } = error as Error;
  const at = isNotLeader(error) ? message.indexOf(LEADER) : -1;
  return at < 0 ? undefined : message.slice(at + LEADER.length);
}
