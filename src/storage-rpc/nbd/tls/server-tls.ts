import type { Socket } from 'node:net';
import { createServer, type TLSSocket, type TlsOptions } from 'node:tls';
import { checkOneOf, checkOptions, type OptionNames } from '../../../core/arguments.js';
import { RoceError } from '../../../core/errors.js';
import type { TlsPolicy } from '../protocol/negotiation.js';
import { readCertificates } from './certificate-folder.js';
import { readPskFile } from './psk-file.js';
import { PSK_TLS, TLS_VERSION_MIN } from './psk-suites.js';

/** TLS of an NBD server, by certificates or by keys that both sides have. The files are those of nbdkit. */
export interface NbdTlsOptions {
  /**
   * A folder with `server-cert.pem` and `server-key.pem`; `ca-cert.pem` and `ca-crl.pem` for {@link verifyPeer}. Either
   * this or `pskFile`.
   */
  readonly certificates?: string | undefined;
  /**
   * A file with a line `USER:KEY` for each client, the key in hexadecimal, 16 to 64 bytes. Clients without one of these
   * keys are refused.
   */
  readonly pskFile?: string | undefined;
  /** Clients need a certificate signed by `ca-cert.pem`. Default false: any client may use TLS. */
  readonly verifyPeer?: boolean | undefined;
  /**
   * `required`: clients without TLS are refused. `optional`: clients without TLS are also accepted, so an attacker on
   * the path can downgrade a client. Default `required`.
   */
  readonly policy?: 'required' | 'optional' | undefined;
}

const TLS_OPTIONS: OptionNames<NbdTlsOptions> = { certificates: true, pskFile: true, verifyPeer: true, policy: true };

export interface TlsConfig {
  readonly policy: TlsPolicy;
  readonly credentials: TlsOptions;
}

export async function readTlsConfig(options: NbdTlsOptions): Promise<TlsConfig> {
  checkOptions('NbdServer.open tls', options, TLS_OPTIONS);
  const { certificates, pskFile, verifyPeer = false, policy = 'required' } = options;
  checkOneOf('policy', policy, ['required', 'optional']);
  if (certificates !== undefined && pskFile !== undefined) {
    throw new RoceError('ERR_ROCE_CONFLICT', 'a server has certificates or keys, not both', 'give one of the two');
  }
  if (pskFile !== undefined) {
    if (verifyPeer) {
      throw new RoceError('ERR_ROCE_CONFLICT', 'clients with keys have no certificates to be verified', 'leave it out');
    }
    const keys = await readPskFile(pskFile);
    return { policy, credentials: { ...PSK_TLS, pskCallback: (_, user) => keys.get(user) ?? null } };
  }
  if (certificates === undefined) {
    throw new RoceError('ERR_ROCE_INVALID_ARGUMENT', 'TLS needs certificates or keys', 'give certificates or pskFile');
  }
  const read = await readCertificates(certificates, 'server');
  if (verifyPeer && read.ca === undefined) {
    throw new RoceError('ERR_ROCE_IO', `there is no ca-cert.pem in ${certificates}`, 'it names the accepted clients');
  }
  const peers = { requestCert: verifyPeer, rejectUnauthorized: verifyPeer };
  return { policy, credentials: { ...read, ...peers, minVersion: TLS_VERSION_MIN } };
}

export function acceptTls(socket: Socket, credentials: TlsOptions): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const gone = () => reject(new Error('the client went'));
    if (socket.destroyed) {
      gone();
      return;
    }
    socket.once('close', gone);
    // A server that never listens, used for node:tls's verification of client certificates.
    const server = createServer(credentials, resolve);
    server.once('tlsClientError', reject);
    server.emit('connection', socket);
  });
}
