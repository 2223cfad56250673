/** What JavaScript runtimes other than Node.js lack. */

import process from 'node:process';
import { RoceError } from '../core/errors.js';

type Versions = Readonly<Record<string, string | undefined>>;

/** Throws where no kind of port works: Deno has no `getSendQueueCount` of sockets, and binds no open descriptor. */
export function refuseForeignRuntime(versions: Versions = process.versions): void {
  if (versions['deno'] === undefined) return;
  throw new RoceError(
    'ERR_ROCE_UNSUPPORTED',
    `Deno ${versions['deno']} cannot run a NIC: its node:dgram lacks functions that the NIC needs`,
    'run the program with Node.js 20.19 or later, or with Bun: docs/faq.md',
  );
}

/** Why a port cannot wait for its socket on the event loop; Bun would abort the process. Undefined if it can. */
export function whyNoLoopPoll(versions: Versions = process.versions): string | undefined {
  if (versions['bun'] === undefined) return undefined;
  return "Bun has no uv_poll; in Bun only engine: 'worker' has batched UDP";
}
