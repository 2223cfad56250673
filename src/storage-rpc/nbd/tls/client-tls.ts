/** TLS of an NBD client: whom it takes for the server, and the upgrade of its connection. The handshake is that of node:tls. */

import { isIP, type Socket } from 'node:net';
import { userInfo } from 'node:os';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { RoceError } from '../../../core/errors.js';
import { readCertificates } from './certificate-folder.js';
import { readPskFile } from './psk-file.js';
import { PSK_TLS, TLS_VERSION_MIN } from './psk-suites.js';

/** What an NBD URI says of TLS (NetworkBlockDevice/nbd, doc/uri.md; the two files as in libnbd). */
export interface ClientTls {
  /** A folder with `ca-cert.pem`, and `client-cert.pem` and `client-key.pem` for servers that ask for them. Default: whom Node trusts. */
  readonly certificates?: string;
  /** A file of pre-shared keys; it takes the place of certificates. */
  readonly pskFile?: string;
  /** Whose key it is. Default: who runs this process. */
  readonly user?: string;
  /** The name that the certificate has to have. */
  readonly hostname: string;
  /** Whether the certificate is checked. */
  readonly verifyPeer: boolean;
}

/** For node:tls. Rejects with ERR_ROCE_IO, ERR_ROCE_MALFORMED and ERR_ROCE_NOT_FOUND for files without what is needed. */
export async function clientCredentials(tls: ClientTls): Promise<ConnectionOptions> {
  const { certificates, pskFile, hostname, verifyPeer } = tls;
  const name = { host: hostname, ...(isIP(hostname) === 0 && { servername: hostname }) };
  if (pskFile !== undefined) {
    const user = tls.user ?? userInfo().username;
    const psk = (await readPskFile(pskFile)).get(user);
    if (psk === undefined) throw new RoceError('ERR_ROCE_NOT_FOUND', `${pskFile} has no key of '${user}'`);
    return { ...PSK_TLS, pskCallback: () => ({ identity: user, psk }), checkServerIdentity: refuseCertificate };
  }
  const read = certificates === undefined ? {} : await readCertificates(certificates, 'client');
  return { ...read, ...name, rejectUnauthorized: verifyPeer, minVersion: TLS_VERSION_MIN };
}

/** A server that shows a certificate has not shown that it knows the key. */
function refuseCertificate(_: string, certificate: object): Error | undefined {
  return Object.keys(certificate).length === 0 ? undefined : new Error('the server has a certificate and not the key');
}

/** The connection as it goes on over TLS. Rejects with ERR_ROCE_CONNECT when the server does not prove itself. */
export function connectTls(socket: Socket, credentials: ConnectionOptions): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const fail = (why: string, cause?: Error) =>
      reject(new RoceError('ERR_ROCE_CONNECT', `no TLS with the NBD server: ${why}`, undefined, { cause }));
    const onError = (error: Error) => fail(error.message, error);
    const onClose = () => fail('it closed the connection');
    const secure = connect({ ...credentials, socket }, () => {
      secure.off('error', onError).off('close', onClose);
      resolve(secure);
    });
    secure.once('error', onError).once('close', onClose);
  });
}
