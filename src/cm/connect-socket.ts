import { once } from 'node:events';
import { connect, isIP, type Socket } from 'node:net';
import { RoceError } from '../core/errors.js';
import type { IpAddress } from '../packet/address.js';

const CONNECT_TIMEOUT_MS = 5_000;

export async function connectSocket(
  host: string,
  port: number,
  local?: IpAddress,
  signal?: AbortSignal,
): Promise<Socket> {
  const family = isIP(host);
  if (local !== undefined && (family === 0 || family === local.family)) {
    const socket = await connectFrom(host, port, local, signal);
    if (socket !== undefined) return socket;
  }
  return connected(connect({ host, port }), host, port, signal);
}

/**
 * Undefined if `local` belongs to no interface, such as the address of a NIC on a software switch, or needs a named
 * interface.
 */
async function connectFrom(
  host: string,
  port: number,
  { text, family }: IpAddress,
  signal: AbortSignal | undefined,
): Promise<Socket | undefined> {
  try {
    return await connected(connect({ host, port, family, localAddress: text }), host, port, signal);
  } catch (error) {
    const { code, syscall } = ((error as RoceError).cause ?? {}) as NodeJS.ErrnoException;
    const isNoPlace = syscall === 'bind' && (code === 'EADDRNOTAVAIL' || code === 'EINVAL');
    if (isNoPlace || code === 'ENOTFOUND') return undefined;
    throw error;
  }
}

async function connected(socket: Socket, host: string, port: number, signal: AbortSignal | undefined): Promise<Socket> {
  const timeout = AbortSignal.timeout(CONNECT_TIMEOUT_MS);
  try {
    await once(socket, 'connect', { signal: signal === undefined ? timeout : AbortSignal.any([timeout, signal]) });
  } catch (cause) {
    socket.destroy();
    const why = timeout.aborted ? `no answer for ${CONNECT_TIMEOUT_MS / 1000} s` : (cause as Error).message;
    throw new RoceError('ERR_ROCE_CONNECT', `cannot connect to ${host}:${port}: ${why}`, 'is the server running?', {
      cause,
    });
  }
  return socket;
}
