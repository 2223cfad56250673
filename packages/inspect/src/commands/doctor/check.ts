/** What `rocev2 doctor` says of one thing that it has looked at. */

/**
 * `ok`: as it should be. `warning`: works, but not as well as it could. `failed`: does not work. `cannot tell`: looked
 * at, without an answer.
 * `not tested`: nobody asked, or something before it failed.
 */
export type CheckVerdict = 'ok' | 'warning' | 'failed' | 'cannot tell' | 'not tested';

/** Things that are looked at, in the order of a report. */
export type CheckName =
  | 'route'
  | 'device'
  | 'port'
  | 'cm'
  | 'loss'
  | 'order'
  | 'service'
  | 'mtu'
  | 'dscp'
  | 'ecn'
  | 'icrc'
  | 'rules'
  | 'timeout'
  | 'endpoint';

/** One line of the report. */
export interface Check {
  /** What was looked at. */
  readonly name: CheckName;
  /** How it is. */
  readonly verdict: CheckVerdict;
  /** What was seen, in a sentence. */
  readonly text: string;
  /** What to do about it. */
  readonly advice?: string;
}

export function check(name: CheckName, verdict: CheckVerdict, text: string, advice?: string): Check {
  return { name, verdict, text, ...(advice !== undefined && { advice }) };
}
