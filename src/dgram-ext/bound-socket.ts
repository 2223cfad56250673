/**
 * One bound node:dgram socket with large buffers, ready for synchronous sends. Native options are used where they can be had; the
 * result says whether they were.
 *
 * Invariant: the file descriptor of a native socket is closed exactly once, by Node after it has adopted it, by us before.
 */

import { createSocket, type Socket } from 'node:dgram';
import type { IpAddress } from '../packet/address.js';
import { bindError } from './bind-error.js';
import { closeNativeSocket, forbidSharing, nativeUdpAvailable, openNativeSocket } from './native-socket.js';

/** What is asked for each direction where nobody says; Linux grants twice that, up to its limits. */
export const DEFAULT_SOCKET_BUFFER_BYTES = 4 * 1024 * 1024;
const SMALLEST_SOCKET_BUFFER_BYTES = 64 * 1024;

/** What {@link bindSocket} needs to know. */
export interface BoundSocketOptions {
  /** Where it is bound. */
  readonly address: IpAddress;
  /** 0 lets the system choose. */
  readonly udpPort: number;
  /** Asked for; the system may grant less. */
  readonly receiveBufferBytes: number;
  /** Asked for; the system may grant less. */
  readonly sendBufferBytes: number;
  /** Whether to set the options that the ICRC needs, through koffi. */
  readonly native: boolean;
}

/** A socket with what the system granted. */
export interface BoundSocket {
  /** Bound, not connected; to be closed by {@link closeSocket}. */
  readonly socket: Socket;
  /** Where it is bound: the one asked for, or the one the system chose. */
  readonly udpPort: number;
  /** What the kernel accounts received datagrams against: on Linux twice the size asked for. */
  readonly receiveBufferBytes: number;
}

/** Rejects with ERR_ROCE_IO that says what to do. */
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

/** Resolves when the socket is closed and its address free. */
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
    } catch {
      // Refused: the next size is half of it, and the system's default remains if none is accepted.
    }
  }
}
