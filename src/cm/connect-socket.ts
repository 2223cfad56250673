/** TCP connections on the way to RDMA ones. */

import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { RoceError } from '../core/errors.js';

const CONNECT_TIMEOUT_MS = 5_000;

/** Rejects with ERR_ROCE_CONNECT, saying why: refused, unreachable, or no answer for five seconds. */
export async function connectSocket(host: string, port: number): Promise<Socket> {
  const socket = connect({ host, port });
  const timeout = AbortSignal.timeout(CONNECT_TIMEOUT_MS);
  try {
    await once(socket, 'connect', { signal: timeout });
  } catch (cause) {
    socket.destroy();
    const why = timeout.aborted ? `no answer for ${CONNECT_TIMEOUT_MS / 1000} s` : (cause as Error).message;
    throw new RoceError('ERR_ROCE_CONNECT', `cannot connect to ${host}:${port}: ${why}`, 'is the server running?', {
      cause,
    });
  }
  return socket;
}
