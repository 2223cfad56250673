/** Reports unreadable blocks at the server of a cluster disk; clients only receive EIO. */

import { counted, type Output } from '@rocev2/command';
import { NS_PER_S } from 'rocev2/internal/core';
import { nowNs } from 'rocev2/internal/driver';

/** A client that keeps reading would otherwise flood the terminal. */
const QUIET_NS = 10 * NS_PER_S;

export function readFailureTeller(output: Pick<Output, 'warn'>, now = nowNs): (error: Error) => void {
  let quietUntilNs = Number.NEGATIVE_INFINITY;
  let untold = 0;
  return ({ message }) => {
    if (now() < quietUntilNs) {
      untold++;
      return;
    }
    const others = untold === 0 ? '' : `; ${counted(untold, 'read')} before it also failed`;
    output.warn(`${message.replace(/^EIO: /, '')}${others} ('rocev2 extents status' shows which nodes are down)`);
    quietUntilNs = now() + QUIET_NS;
    untold = 0;
  };
}
