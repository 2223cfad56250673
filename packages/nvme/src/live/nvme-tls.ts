/**
 * TLS 1.3 under NVMe/TCP by pre-shared keys, through node:tls, which supports them with SHA-256 only. Diffie-Hellman
 * keys are fresh per connection (forward secrecy).
 */

import type { Socket } from 'node:net';
import { connect, createSecureContext, createServer, type SecureContext, type TLSSocket } from 'node:tls';
import { RoceError } from 'rocev2/internal/core';
import { withoutTickets } from 'rocev2/internal/storage-rpc';
import { NvmeTlsKey, type TlsNames, type TlsPsk } from '../auth/tls-key.js';
import { DISCOVERY_NQN } from '../opcodes.js';

/** A key that host and target share, by which they authenticate each other with TLS 1.3. */
export interface NvmeHostTlsKey {
  /** NVMe qualified name under which the host connects. */
  readonly hostNqn: string;
  /** A key of the form `NVMeTLSkey-1:HASH:BASE64:`, of 32 bytes. */
  readonly key: string;
}

const SUITE = { minVersion: 'TLSv1.3', maxVersion: 'TLSv1.3', ciphers: 'TLS_AES_128_GCM_SHA256' } as const;
const HANDSHAKE_TIMEOUT_MS = 10_000;

/** TLS handshakes of a target: a host needs the key whose identity it names. */
export class NvmeTlsServer {
  /** Why hosts of the Linux kernel cannot get in, which take no session tickets; undefined where they can. */
  readonly kernelRefusal = withoutTickets(createSecureContext(SUITE));
  readonly #known = new Map<string, { readonly names: TlsNames; readonly psk: Buffer }>();

  constructor(keys: readonly NvmeHostTlsKey[], subsystemNqns: readonly string[]) {
    for (const { hostNqn, key: text } of keys) {
      const key = NvmeTlsKey.parse(text);
      for (const subsystemNqn of [DISCOVERY_NQN, ...subsystemNqns]) {
        const names = { hostNqn, subsystemNqn };
        // An identity of version 0 does not tell which of two keys it means. Hosts have that of libnvme.
        for (const derivation of ['1', '1-libnvme', '0-libnvme'] as const) {
          const { identity, psk } = key.pskOf(names, derivation);
          this.#known.set(identity, { names, psk });
        }
      }
    }
  }

  admit(socket: Socket, onHost: (secure: TLSSocket, names: TlsNames) => void, onRefused: (why: string) => void): void {
    let names: TlsNames | undefined;
    const pskCallback = (_: TLSSocket, identity: string) => {
      const known = this.#known.get(identity);
      names = known?.names;
      return known?.psk ?? null;
    };
    // A server that never listens, for this connection alone, so that no session of another connection counts.
    const server = createServer({ ...SUITE, handshakeTimeout: HANDSHAKE_TIMEOUT_MS, pskCallback }, (secure) => {
      if (names === undefined) secure.destroy();
      else onHost(secure, names);
    });
    withoutTickets((server as unknown as { _sharedCreds: SecureContext })._sharedCreds);
    server.once('tlsClientError', ({ message }) => {
      onRefused(message);
      socket.destroy();
    });
    server.emit('connection', socket);
  }
}

export function connectNvmeTls(socket: Socket, { identity, psk }: TlsPsk): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    // Of an error of OpenSSL that is the part in words.
    const onError = (error: Error & { readonly reason?: string }) => reject(noTls(error.reason ?? error.message));
    const onClose = () => reject(noTls('the target closed the connection'));
    const pskCallback = () => ({ identity, psk });
    const identify = { pskCallback, checkServerIdentity: refuseCertificate };
    // Without rejectUnauthorized, NODE_TLS_REJECT_UNAUTHORIZED decides.
    const secure = connect({ ...SUITE, ...identify, socket, rejectUnauthorized: true }, () => {
      secure.off('error', onError).off('close', onClose);
      resolve(secure);
    });
    secure.once('error', onError).once('close', onClose);
  });
}

/** A target that shows a certificate has not shown that it has the key. */
function refuseCertificate(_: string, certificate: object): Error | undefined {
  return Object.keys(certificate).length === 0 ? undefined : new Error('it has a certificate and not the key');
}

function noTls(why: string): RoceError {
  return new RoceError('ERR_ROCE_CONNECT', `no TLS: ${why}`, 'does the target have TLS, and the key of this host?');
}
