/**
 * Who may connect, and how bytes over TCP are protected: by the credentials of the device, whose packets they protect too, or by credentials of their own
 * where there is no device. One TCP port is for both transports, inside TLS and outside.
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
/** Of a server without TLS for this client. */
const REFUSAL = /^\{"refused":"([^"]*)"/;

/** For connections of this side. Throws ERR_ROCE_CONFLICT for credentials beside a device, and as `openDevice` for credentials that cannot be used. */
export function securityOf(
  device: RdmaDevice | undefined,
  secure: SecureOptions | undefined,
): ChannelSecurity | undefined {
  if (device !== undefined && secure !== undefined) {
    throw new RoceError('ERR_ROCE_CONFLICT', 'secure beside a device', 'give the credentials to openDevice');
  }
  if (device !== undefined) return channelSecurity(device);
  if (secure === undefined) return undefined;
  const security = new DeviceSecurity(secure);
  return { security, mode: security.mode, allow: security.allow };
}

/**
 * Connects over TCP. Where protection is only preferred, a peer without TLS is dialled again without. Rejects with ERR_ROCE_CONNECT, and with ERR_ROCE_MISMATCH
 * for a peer that has no secure mode; the stream ends with ERR_ROCE_MISMATCH when the peer asks for it.
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

/** A peer that wants TLS says so. */
const PLAIN: Beginning = {
  refusalIn: (first) => {
    const [, why] = REFUSAL.exec(first.toString('latin1')) ?? [];
    return why === undefined ? undefined : new RoceError('ERR_ROCE_MISMATCH', `the peer refuses: ${printable(why)}`);
  },
  silence: (cause) => cause,
};
/** A server knows whom it lets in when its client believes the handshake to be over (RFC 8446 §2). */
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

/** Who takes a connection, by what it begins with. */
export interface SocketHandlers {
  /** It sets up RDMA. */
  onExchange(control: ControlChannel): void;
  /** It carries the protocol itself. */
  onStream(stream: SocketStream): void;
  /** The peer did not prove that it is somebody who is let in, or does not even try. The connection is closed. */
  onUntrusted(error: RoceError): void;
}

/** Listens to what a new connection begins with: a handshake of TLS where there are credentials, then an exchange or the protocol itself. */
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
      socket.destroySoon(); // The socket is paused: whether the peer hangs up would not be heard.
    },
  );
}

function sortBytes(socket: Socket, secured: SecuredSocket | undefined, handlers: SocketHandlers): void {
  const bytes = secured?.socket ?? socket;
  bytes.on('error', () => {}); // `close` follows, and whoever has the connection reports the failure.
  bytes.once('data', (first: Buffer) => {
    bytes.pause();
    bytes.unshift(first);
    if (bytes !== socket && first[0] === EXCHANGE_BEGINS) {
      handlers.onExchange(new ControlChannel(socket, async () => secured!)); // It goes on reading by itself.
      return;
    }
    // The exchange answers a peer that asks for TLS where there is none.
    if (first[0] === EXCHANGE_BEGINS || first[0] === TLS_HANDSHAKE) handlers.onExchange(new ControlChannel(socket));
    else handlers.onStream(new SocketStream(bytes));
    bytes.resume();
  });
  bytes.resume();
}
