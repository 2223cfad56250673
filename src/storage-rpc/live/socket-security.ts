/**
 * Access control, and protection of bytes over TCP: by the device's credentials, or by separate ones without a device.
 * One TCP port serves both transports, with and without TLS.
 */

import type { Socket } from 'node:net';
import { connectSocket } from '../../cm/connect-socket.js';
import { ControlChannel } from '../../cm/control-channel.js';
import { printable } from '../../cm/printable.js';
import {
  type ChannelSecurity,
  channelSecurity,
  PlainPeerError,
  SECURE_ONLY,
  type SecuredSocket,
  secureAsClient,
  secureAsServer,
  TLS_HANDSHAKE,
} from '../../cm/secure-channel.js';
import { RoceError } from '../../core/errors.js';
import type { RdmaDevice } from '../../verbs/device.js';
import { DeviceSecurity, type SecureOptions } from '../../verbs/security.js';
import { type Beginning, SocketStream } from './socket-stream.js';

const EXCHANGE_BEGINS = '{'.charCodeAt(0);
const REFUSAL = /^\{"refused":"([^"]*)"/;

export function securityOf(
  device: RdmaDevice | undefined,
  secure: SecureOptions | undefined,
): ChannelSecurity | undefined {
  if (device !== undefined && secure !== undefined) {
    throw new RoceError(
      'ERR_ROCE_CONFLICT',
      'both secure and a device are given',
      'give the credentials to openDevice',
    );
  }
  if (device !== undefined) return channelSecurity(device);
  if (secure === undefined) return undefined;
  const security = new DeviceSecurity(secure);
  return { security, mode: security.mode, allow: security.allow };
}

/**
 * If protection is only preferred, a peer without TLS is redialled in the clear. Rejects with ERR_ROCE_CONNECT, and
 * with ERR_ROCE_MISMATCH for a peer that has no secure mode; the stream ends with ERR_ROCE_MISMATCH when the peer
 * requires it.
 */
export async function dialStream(
  host: string,
  port: number,
  security: ChannelSecurity | undefined,
): Promise<SocketStream> {
  const socket = await connectSocket(host, port);
  if (security === undefined) return new SocketStream(socket, PLAIN);
  try {
    return new SocketStream((await secureAsClient(socket, host, security)).socket, SECURED);
  } catch (error) {
    if (security.mode === 'prefer' && error instanceof PlainPeerError) return dialStream(host, port, undefined);
    throw error;
  }
}

const PLAIN: Beginning = {
  refusalIn: (first) => {
    const [, why] = REFUSAL.exec(first.toString('latin1')) ?? [];
    return why === undefined ? undefined : new RoceError('ERR_ROCE_MISMATCH', `the peer refuses: ${printable(why)}`);
  },
  silence: (cause) => cause,
};
/** A server has authenticated its client only after the client considers the handshake complete (RFC 8446 §2). */
const SECURED: Beginning = {
  refusalIn: () => undefined,
  silence: (cause) =>
    new RoceError(
      'ERR_ROCE_CONNECT',
      'the peer ended the connection behind the handshake',
      'does it let this end in, by the root of its certificate and by its name?',
      { cause },
    ),
};

export interface SocketHandlers {
  onExchange(control: ControlChannel): void;
  onStream(stream: SocketStream): void;
  onUntrusted(error: RoceError): void;
}

export function sortSocket(socket: Socket, security: ChannelSecurity | undefined, handlers: SocketHandlers): void {
  if (security === undefined) {
    sortBytes(socket, undefined, handlers);
    return;
  }
  secureAsServer(socket, security).then(
    (secured) => sortBytes(socket, secured, handlers),
    (error: RoceError) => {
      handlers.onUntrusted(error);
      if (error instanceof PlainPeerError) socket.write(`${JSON.stringify({ refused: SECURE_ONLY })}\n`);
      socket.destroySoon(); // The socket is paused: a close by the peer would not be noticed.
    },
  );
}

function sortBytes(socket: Socket, secured: SecuredSocket | undefined, handlers: SocketHandlers): void {
  const bytes = secured?.socket ?? socket;
  bytes.on('error', () => {});
  bytes.once('data', (first: Buffer) => {
    bytes.pause();
    bytes.unshift(first);
    if (bytes !== socket && first[0] === EXCHANGE_BEGINS) {
      handlers.onExchange(new ControlChannel(socket, async () => secured!));
      return;
    }
    // The exchange answers a peer that requests TLS where there is none.
    if (first[0] === EXCHANGE_BEGINS || first[0] === TLS_HANDSHAKE) handlers.onExchange(new ControlChannel(socket));
    else handlers.onStream(new SocketStream(bytes));
    bytes.resume();
  });
  bytes.resume();
}
