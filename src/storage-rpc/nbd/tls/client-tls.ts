import { isIP, type Socket } from 'node:net';
import { userInfo } from 'node:os';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { RoceError } from '../../../core/errors.js';
import { readCertificates } from './certificate-folder.js';
import { readPskFile } from './psk-file.js';
import { PSK_TLS, TLS_VERSION_MIN } from './psk-suites.js';

export interface ClientTls {
  readonly certificates?: string;
  readonly pskFile?: string;
  readonly user?: string;
  readonly hostname: string;
  readonly verifyPeer: boolean;
}

export async function clientCredentials(tls: ClientTls): Promise<ConnectionOptions> {
  const { certificates, pskFile, hostname, verifyPeer } = tls;
  const name = { host: hostname, ...(isIP(hostname) === 0 && { servername: hostname }) };
  if (pskFile !== undefined) {
    const user = tls.user ?? userInfo().username;
    const psk = (await readPskFile(pskFile)).get(user);
    if (psk === undefined) throw new RoceError('ERR_ROCE_NOT_FOUND', `${pskFile} has no key of '${user}'`);
    const identify = { pskCallback: () => ({ identity: user, psk }), checkServerIdentity: refuseCertificate };
    return { ...PSK_TLS, ...identify, rejectUnauthorized: true };
  }
  const read = certificates === undefined ? {} : await readCertificates(certificates, 'client');
  return { ...read, ...name, rejectUnauthorized: verifyPeer, minVersion: TLS_VERSION_MIN };
}

/** A server that shows a certificate has not proved that it has the pre-shared key. */
function refuseCertificate(_: string, certificate: object): Error | undefined {
  return Object.keys(certificate).length === 0 ? undefined : new Error('the server has a certificate and not the key');
}

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
