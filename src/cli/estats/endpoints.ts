/** Which endpoints a command looks at: those of this user on this host, one of them, or one that serves HTTP somewhere else. */

import { RoceError } from '../../core/errors.js';
import { askSnapshot, type EndpointTarget, findEndpoints } from '../../estats/endpoint-client.js';
import type { EstatsSnapshot } from '../../estats/snapshot.js';

export interface EndpointOptions {
  readonly endpoint?: string;
  readonly minutes: number;
  readonly json?: true;
}

export interface AttachedEndpoint {
  readonly target: EndpointTarget;
  readonly snapshot: EstatsSnapshot;
}

/** All running endpoints; with `wanted` (process number, IP address, path of a control socket, or URL) that one. Throws ERR_ROCE_CONNECT when there is none. */
export async function attach(wanted: string | undefined, minutes: number): Promise<AttachedEndpoint[]> {
  if (wanted !== undefined && /^https?:/.test(wanted)) return [await at({ url: wanted }, minutes)];
  if (wanted?.includes('/')) return [await at({ socketPath: wanted }, minutes)];
  const running = (await findEndpoints(minutes)).map(({ socketPath, snapshot }) => ({
    target: { socketPath },
    snapshot,
  }));
  const chosen = running.filter(
    ({ snapshot }) => wanted === undefined || wanted === String(snapshot.pid) || wanted === snapshot.address,
  );
  if (chosen.length > 0) return chosen;
  throw new RoceError(
    'ERR_ROCE_CONNECT',
    wanted === undefined ? 'no endpoint with telemetry is running' : `no endpoint '${wanted}' is running`,
    running.length > 0
      ? `there are ${running.map(({ snapshot }) => `${snapshot.pid} on ${snapshot.address}`).join(', ')}`
      : "start one with --estats, e.g. 'rocev2 bw write --estats', or openDevice({estats: true})",
  );
}

async function at(target: EndpointTarget, minutes: number): Promise<AttachedEndpoint> {
  return { target, snapshot: await askSnapshot(target, minutes) };
}

/** `12345 on 127.0.0.2`. */
export function endpointName({ pid, address }: EstatsSnapshot): string {
  return `${pid} on ${address}`;
}
