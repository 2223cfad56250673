/**
 * TLS 1.3 under a control connection. The ends authenticate each other before any parameters are exchanged; packet keys
 * are exported from the handshake (RFC 8446 §7.5), which binds exchange and packets to the same peer.
 */

import { once } from 'node:events';
import { isIP, type Socket } from 'node:net';
import { checkServerIdentity, connect, createServer, type PeerCertificate, type TLSSocket } from 'node:tls';
import { RoceError } from '../core/errors.js';
import type { RdmaDevice } from '../verbs/device.js';
import { checkSecureMode, type DeviceSecurity, type SecureTerms } from '../verbs/security.js';
import { printable } from './printable.js';

export interface ChannelKeys {
  readonly peer: string;
  readonly isInitiator: boolean;
  readonly sendSecret: Uint8Array;
  readonly receiveSecret: Uint8Array;
}

export interface SecuredSocket {
  readonly socket: Socket;
  readonly keys: ChannelKeys | undefined;
}

export interface ChannelSecurity {
  readonly security: DeviceSecurity;
  readonly mode: DeviceSecurity['mode'];
  readonly allow: ReadonlySet<string> | undefined;
}

const VERSION = { minVersion: 'TLSv1.3', maxVersion: 'TLSv1.3' } as const;
const PSK_SUITE = 'TLS_AES_128_GCM_SHA256';
const HANDSHAKE_TIMEOUT_MS = 10_000;
export const TLS_HANDSHAKE = 0x16;
const NO_TLS_CODES = new Set(['ERR_SSL_WRONG_VERSION_NUMBER', 'ERR_SSL_PACKET_LENGTH_TOO_LONG']);
const LABEL = 'EXPORTER-rocev2-psp';
const SECRET_BYTES = 32;

export const SECURE_ONLY = 'packets have to be protected here; connect from a device with secure';

export class PlainPeerError extends RoceError {
  constructor(peer: string) {
    super(
      'ERR_ROCE_MISMATCH',
      `${peer} has no secure mode, and packets have to be protected`,
      "give it credentials, or set secure to 'prefer' or 'off' where the network is trusted",
    );
  }
}

export class UntrustedPeerError extends RoceError {
  constructor(text: string, hint: string, cause?: unknown) {
    super('ERR_ROCE_CONNECT', text, hint, { cause });
  }
}

export function channelSecurity(device: RdmaDevice, { secure, allow }: SecureTerms = {}): ChannelSecurity | undefined {
  const { security } = device;
  if (secure !== undefined) checkSecureMode('secure', secure);
  if (security === undefined) {
    if ((secure ?? 'off') === 'off' && allow === undefined) return undefined;
    throw new RoceError(
      'ERR_ROCE_INVALID_ARGUMENT',
      'secure needs a device that has credentials',
      'open it with secure: {psk}, or with cert, key and ca: docs/security.md',
    );
  }
  const mode = secure ?? security.mode;
  if (security.mode === 'require' && mode !== 'require') {
    throw new RoceError(
      'ERR_ROCE_CONFLICT',
      `secure is '${mode}', and the device requires protection`,
      "open the device with secure: {mode: 'prefer'}",
    );
  }
  if (mode === 'off') return undefined;
  return { security, mode, allow: allow === undefined ? security.allow : new Set(allow) };
}

export async function secureAsClient(
  socket: Socket,
  host: string,
  { security, allow }: ChannelSecurity,
): Promise<SecuredSocket> {
  const { keys, certificates } = security;
  const [own] = keys;
  const secure = connect({
    ...VERSION,
    rejectUnauthorized: true, // Else NODE_TLS_REJECT_UNAUTHORIZED decides.
    socket,
    ...(certificates === undefined
      ? { ciphers: PSK_SUITE, pskCallback: () => ({ identity: own.identity, psk: Buffer.from(own.key) }) }
      : { ...certificates, ...(isIP(host) === 0 && { servername: host }) }),
    checkServerIdentity: (_, certificate) => {
      if (certificates === undefined) return refuseCertificate(certificate);
      return allow === undefined ? checkServerIdentity(host, certificate) : undefined;
    },
  });
  const peer = `${host}:${socket.remotePort ?? '?'}`;
  try {
    await once(secure, 'secureConnect', { signal: AbortSignal.timeout(HANDSHAKE_TIMEOUT_MS) });
    const names = certificates === undefined ? [own.identity] : namesOf(secure);
    return { socket: secure, keys: keysOf(secure, checkedName(names, allow), true) };
  } catch (cause) {
    secure.on('error', () => {});
    secure.destroy();
    if (cause instanceof RoceError) throw cause;
    const { code, name } = cause as NodeJS.ErrnoException;
    if (NO_TLS_CODES.has(code ?? '')) throw new PlainPeerError(peer);
    throw untrusted(
      peer,
      name === 'AbortError' ? `no answer for ${HANDSHAKE_TIMEOUT_MS / 1000} s` : whyOf(cause as Error),
      cause,
    );
  }
}

export async function secureAsServer(
  socket: Socket,
  { security, mode, allow }: ChannelSecurity,
): Promise<SecuredSocket> {
  const peer = `${socket.remoteAddress ?? '?'}:${socket.remotePort ?? '?'}`;
  if ((await firstOctet(socket)) !== TLS_HANDSHAKE) {
    if (mode === 'prefer') return { socket, keys: undefined };
    throw new PlainPeerError(peer);
  }
  const { keys, certificates } = security;
  let identity: string | undefined;
  const secure = await new Promise<TLSSocket>((resolve, reject) => {
    // A server that never listens, for this connection alone, so that no session of another connection counts.
    const server = createServer(
      {
        ...VERSION,
        handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
        ...(certificates === undefined
          ? {
              ciphers: PSK_SUITE,
              pskCallback: (_: TLSSocket, name: string) => {
                const known = keys.find((key) => key.identity === name);
                identity = known?.identity;
                return known === undefined ? null : Buffer.from(known.key);
              },
            }
          : { ...certificates, requestCert: true, rejectUnauthorized: true }),
      },
      resolve,
    );
    server.once('tlsClientError', (error) => reject(untrusted(peer, whyOf(error), error)));
    socket.once('close', () => reject(untrusted(peer, 'it left during the handshake', undefined)));
    server.emit('connection', socket);
  });
  try {
    const names = certificates === undefined ? (identity === undefined ? [] : [identity]) : namesOf(secure);
    return { socket: secure, keys: keysOf(secure, checkedName(names, allow), false) };
  } catch (error) {
    secure.destroy();
    throw error;
  }
}

async function firstOctet(socket: Socket): Promise<number> {
  const left = once(socket, 'close').then(() => {
    throw new RoceError('ERR_ROCE_CONNECT', 'the peer left before it said anything');
  });
  const first = once(socket, 'data').then(([data]: Buffer[]) => {
    socket.pause();
    socket.unshift(data);
    return data[0];
  });
  left.catch(() => {});
  first.catch(() => {});
  return Promise.race([first, left]);
}

/** A peer that shows a certificate has not proven that it has the key. */
function refuseCertificate(certificate: PeerCertificate): Error | undefined {
  return Object.keys(certificate).length === 0 ? undefined : new Error('it has a certificate and not the key');
}

function namesOf(secure: TLSSocket): string[] {
  const { subject, subjectaltname = '' } = secure.getPeerCertificate();
  const alternatives = subjectaltname.split(', ').map((name) => name.replace(/^(DNS|IP Address|URI|email):/, ''));
  return [subject?.CN, alternatives].flat(1).filter((name): name is string => name !== undefined && name !== '');
}

function checkedName(names: readonly string[], allow: ReadonlySet<string> | undefined): string {
  const known = allow === undefined ? names[0] : names.find((name) => allow.has(name));
  if (known !== undefined) return printable(known);
  const shown = names.length === 0 ? 'a peer without a name' : `'${printable(names.join("', '"))}'`;
  throw new UntrustedPeerError(`${shown} is not allowed`, 'add its name to allow');
}

function keysOf(secure: TLSSocket, peer: string, isInitiator: boolean): ChannelKeys {
  const secrets = secure.exportKeyingMaterial(2 * SECRET_BYTES, LABEL, Buffer.alloc(0));
  const [fromInitiator, toInitiator] = [secrets.subarray(0, SECRET_BYTES), secrets.subarray(SECRET_BYTES)];
  return {
    peer,
    isInitiator,
    sendSecret: isInitiator ? fromInitiator : toInitiator,
    receiveSecret: isInitiator ? toInitiator : fromInitiator,
  };
}

/** Short: the message of OpenSSL contains a source line and a line break. */
function whyOf(error: Error & { readonly reason?: string }): string {
  return error.reason ?? error.message.trim();
}

function untrusted(peer: string, why: string, cause: unknown): UntrustedPeerError {
  return new UntrustedPeerError(
    `no secure connection with ${peer}: ${why}`,
    'do both ends have the same key, or certificates of a root that the other trusts, and for the right name?',
    cause,
  );
}
