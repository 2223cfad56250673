/** Certificates for tests, made by the openssl of the system. */

import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Whether there is an openssl. */
export function hasOpenssl(): boolean {
  try {
    execFileSync('openssl', ['version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

const KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];

/**
 * A folder with an authority, and certificates of a server at localhost and 127.0.0.1 and of a client, in the names of files that NBD programs use. `purpose`: of the
 * server's, `serverAuth,clientAuth` for one that connects as well.
 */
export function makeCertificates(folder: string, purpose = 'serverAuth'): void {
  mkdirSync(folder);
  const openssl = (...args: string[]) => execFileSync('openssl', args, { cwd: folder, stdio: 'ignore' });
  openssl('req', '-x509', ...KEY, '-subj', '/CN=authority of a test', '-keyout', 'ca-key.pem', '-out', 'ca-cert.pem');
  const sign = (side: string, name: string, purpose: string) =>
    openssl(
      ...['req', '-x509', ...KEY, '-CA', 'ca-cert.pem', '-CAkey', 'ca-key.pem', '-subj', `/CN=${side} of a test`],
      ...['-addext', `subjectAltName=${name}`, '-addext', `extendedKeyUsage=${purpose}`],
      ...['-addext', 'basicConstraints=critical,CA:FALSE'],
      ...['-keyout', `${side}-key.pem`, '-out', `${side}-cert.pem`],
    );
  sign('server', 'DNS:localhost,IP:127.0.0.1', purpose);
  sign('client', 'DNS:client', 'clientAuth');
}

/** Adds a certificate of a client whose subject has no common name. */
export function makeNameless(folder: string): void {
  const signed = ['-CA', 'ca-cert.pem', '-CAkey', 'ca-key.pem', '-subj', '/O=a test'];
  const purpose = ['-addext', 'extendedKeyUsage=clientAuth', '-addext', 'basicConstraints=critical,CA:FALSE'];
  const files = ['-keyout', 'nameless-key.pem', '-out', 'nameless-cert.pem'];
  execFileSync('openssl', ['req', '-x509', ...KEY, ...signed, ...purpose, ...files], { cwd: folder, stdio: 'ignore' });
}

/** Has the authority withdraw the certificate of the client: `ca-crl.pem`. */
export function withdrawClient(folder: string): void {
  const settings = [
    '[ca]',
    'default_ca=c',
    '[c]',
    'database=index',
    'crlnumber=number',
    'default_md=sha256',
    'default_crl_days=2',
  ];
  writeFileSync(join(folder, 'ca.conf'), settings.join('\n'));
  writeFileSync(join(folder, 'index'), '');
  writeFileSync(join(folder, 'number'), '01\n');
  const ca = ['ca', '-config', 'ca.conf', '-keyfile', 'ca-key.pem', '-cert', 'ca-cert.pem'];
  for (const what of [
    ['-revoke', 'client-cert.pem'],
    ['-gencrl', '-out', 'ca-crl.pem'],
  ]) {
    execFileSync('openssl', [...ca, ...what], { cwd: folder, stdio: 'ignore' });
  }
}

/** A folder with some of the files of another one. */
export function copyCertificates(from: string, to: string, ...names: string[]): void {
  mkdirSync(to, { recursive: true });
  for (const name of names) copyFileSync(join(from, name), join(to, name));
}
