import type { RequestOptions } from 'node:https';

/** Credentials for etcd. All but the user require `https://`. */
export interface EtcdAccess {
  /** Authorities that have signed the certificates of its members (PEM). Default: those of Node. */
  readonly ca?: string | undefined;
  /** Client certificate (PEM). */
  readonly cert?: string | undefined;
  /** Its private key (PEM). */
  readonly key?: string | undefined;
  /** A user of etcd, with `password`. */
  readonly user?: string | undefined;
  /** Of the user. */
  readonly password?: string | undefined;
}

export function tlsOf({ ca, cert, key }: EtcdAccess): Pick<RequestOptions, 'ca' | 'cert' | 'key'> {
  return { ...(ca !== undefined && { ca }), ...(cert !== undefined && { cert }), ...(key !== undefined && { key }) };
}

const HINTS: ReadonlyArray<readonly [what: RegExp, hint: string]> = [
  [
    /^(UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|CERT_UNTRUSTED)/,
    "its certificate is not signed by the authorities that are known here: name the file with theirs, 'etcd:https://HOST:PORT?ca=FILE'",
  ],
  [/^ERR_TLS_CERT_ALTNAME_INVALID/, 'write the name or address that its certificate is for'],
  [/^CERT_(HAS_EXPIRED|NOT_YET_VALID)/, 'its certificate is not valid now: renew it, or set the clock'],
  [
    /ALERT|certificate required|bad certificate/i,
    "it requires client certificates: name yours, 'etcd:https://HOST:PORT?ca=FILE&cert=FILE&key=FILE'",
  ],
  [
    /WRONG_VERSION_NUMBER|packet length too long|EPROTO/i,
    "does it speak TLS? Where it does not, write 'etcd:http://HOST:PORT'",
  ],
  [/HTTP request to an HTTPS server/i, "it speaks TLS: write 'etcd:https://HOST:PORT'"],
  [
    /user name is empty|invalid auth token|permission denied/i,
    "it requires a user with this permission: name one, 'etcd:https://HOST:PORT?user=NAME&password=FILE'",
  ],
  [/authentication failed|user name not found/i, 'see the user, and the file with its password'],
  [
    /CommonName of client/,
    'with users, its gateway takes only certificates without a common name: name one whose subject has no CN',
  ],
  [/socket hang up/, "is it up? If it speaks TLS, write 'etcd:https://HOST:PORT'"],
  [/authentication is not enabled/i, 'it has no users: leave `user` and `password` out'],
];

export function hintFor(error: unknown): string {
  const { code = '', message } = error as NodeJS.ErrnoException;
  const found = HINTS.find(([what]) => what.test(code) || what.test(message));
  return found?.[1] ?? 'is it up, with a majority of its members?';
}
