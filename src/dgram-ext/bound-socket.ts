/**
 * Uses native options if available; the result reports whether. Invariant: the file descriptor of a native socket is
 * closed exactly once, by Node after it has adopted it, by us before.
 */

import { createSocket, type Socket } from 'node:dgram';
import type { IpAddress } from '../packet/address.js';
import { bindError } from './bind-error.js';
import { closeNativeSocket, forbidSharing, nativeUdpAvailable, openNativeSocket } from './native-socket.js';

/** Requested per direction by default; Linux grants twice that, up to its limits. */
export const DEFAULT_SOCKET_BUFFER_BYTES = 4 * 1024 * 1024;
const SMALLEST_SOCKET_BUFFER_BYTES = 64 * 1024;

export interface BoundSocketOptions {
  readonly address: IpAddress;
  readonly udpPort: number;
  readonly receiveBufferBytes: number;
  readonly sendBufferBytes: number;
  readonly native: boolean;
}

export interface BoundSocket {
  readonly socket: Socket;
  readonly udpPort: number;
  readonly receiveBufferBytes: number;
}

export async function bindSocket(options: BoundSocketOptions): Promise<BoundSocket> {
  const { address, udpPort } = options;
  const socket = createSocket({
    type: address.family === 4 ? 'udp4' : 'udp6',
    ipv6Only: address.family === 6,
    // Called before send() returns: with the default, dns.lookup, every send would wait for the next tick.
    lookup: (host, _options, callback) => callback(null, host, address.family),
  });
  try {
    if (options.native && nativeUdpAvailable() === undefined) {
      const fd = openNativeSocket(address, udpPort, options.receiveBufferBytes, options.sendBufferBytes);
      try {
        await bound(socket, () => socket.bind({ fd, exclusive: true }));
        forbidSharing(fd);
      } catch (error) {
        closeNativeSocket(fd);
        throw error;
      }
    } else {
      await bound(socket, () => socket.bind({ address: address.text, port: udpPort, exclusive: true }));
      growBuffer(options.receiveBufferBytes, (bytes) => socket.setRecvBufferSize(bytes));
      growBuffer(options.sendBufferBytes, (bytes) => socket.setSendBufferSize(bytes));
    }
  } catch (error) {
    socket.close();
    const code = (error as NodeJS.ErrnoException).code ?? 'unknown error';
    throw code.startsWith('ERR_ROCE') ? error : bindError(code, address.text, udpPort, error);
  }
  return { socket, udpPort: socket.address().port, receiveBufferBytes: socket.getRecvBufferSize() };
}

export function closeSocket(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    socket.close(resolve);
  });
}

function bound(socket: Socket, bind: () => void): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once('error', reject);
    socket.once('listening', () => {
      socket.off('error', reject);
      resolve();
    });
    bind();
  });
}

/** Linux clamps a size that is too large; other systems refuse it, so halve it until they agree. */
function growBuffer(bytes: number, set: (bytes: number) => void): void {
  for (let size = bytes; size >= SMALLEST_SOCKET_BUFFER_BYTES; size >>= 1) {
    try {
      set(size);
      return;
    } catch {}
  }
}
