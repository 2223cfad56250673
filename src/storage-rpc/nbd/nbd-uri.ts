/** NBD URIs (NetworkBlockDevice/nbd, doc/uri.md). */

import { RoceError } from '../../core/errors.js';
import type { SocketAddress } from './listen-address.js';
import type { ClientTls } from './tls/client-tls.js';

const PORT_DEFAULT = 10809;

interface NbdTarget {
  readonly address: SocketAddress;
  readonly exportName: string;
  readonly tls?: ClientTls;
}

const TLS_PARAMETERS = ['tls-certificates', 'tls-psk-file', 'tls-hostname', 'tls-verify-peer', 'tls-type'];
const TLS_TYPES = ['x509', 'psk'];

export function parseNbdUri(text: string): NbdTarget {
  const { user, rest } = splitUser(text);
  const url = URL.canParse(rest) ? new URL(rest) : undefined;
  const [, secure, unix] = /^nbd(s?)(\+unix)?:$/.exec(url?.protocol ?? '') ?? [];
  const address = url && secure !== undefined ? addressOf(url, unix !== undefined) : undefined;
  if (url === undefined || address === undefined) {
    throw new RoceError(
      'ERR_ROCE_MALFORMED',
      `'${text}' is not an NBD URI`,
      'nbd://HOST:PORT/EXPORT or nbd+unix:///EXPORT?socket=PATH; nbds for TLS',
    );
  }
  checkParameters(url, secure === 's');
  const exportName = decodeURIComponent(url.pathname.replace(/^\//, ''));
  return { address, exportName, ...(secure === 's' && { tls: tlsOf(url, address, user) }) };
}

/**
 * libnbd has users also where there is no host, `nbds+unix://alice@/...`, which is no URL to browsers and so to Node.
 */
function splitUser(text: string): { readonly user: string; readonly rest: string } {
  const [, scheme, user, rest] = /^([^:/?]*:\/\/)([^@/?]*)@(.*)$/.exec(text) ?? [];
  return scheme === undefined ? { user: '', rest: text } : { user: decodeURIComponent(user), rest: scheme + rest };
}

function addressOf(url: URL, isUnix: boolean): SocketAddress | undefined {
  const socket = url.searchParams.get('socket');
  if (isUnix) return socket ? { path: socket } : undefined;
  if (url.hostname === '') return undefined;
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  return { host, port: url.port === '' ? PORT_DEFAULT : Number(url.port) };
}

/** A parameter that is passed over could be the one that was to keep the data safe. */
function checkParameters(url: URL, isSecure: boolean): void {
  const known = ['socket', ...(isSecure ? TLS_PARAMETERS : [])];
  const unknown = [...url.searchParams.keys()].find((name) => !known.includes(name));
  if (unknown === undefined) return;
  const hint = TLS_PARAMETERS.includes(unknown)
    ? 'it is for TLS: nbds:// or nbds+unix://'
    : `known are ${known.join(', ')}`;
  throw new RoceError('ERR_ROCE_MALFORMED', `the NBD URI has an unknown parameter '${unknown}'`, hint);
}

function tlsOf(url: URL, address: SocketAddress, user: string): ClientTls {
  const parameter = (name: string) => url.searchParams.get(name) ?? undefined;
  const type = parameter('tls-type');
  const pskFile = parameter('tls-psk-file');
  const certificates = parameter('tls-certificates');
  const verify = parameter('tls-verify-peer');
  const isWrong =
    (type !== undefined && !TLS_TYPES.includes(type)) ||
    (type === 'psk') !== (pskFile !== undefined && type !== undefined) ||
    (verify !== undefined && verify !== '0' && verify !== '1') ||
    (pskFile !== undefined && certificates !== undefined);
  if (isWrong) {
    throw new RoceError(
      'ERR_ROCE_MALFORMED',
      'the TLS parameters of the NBD URI do not fit together',
      'tls-psk-file=FILE, or tls-certificates=FOLDER and tls-verify-peer=0|1; tls-type=psk or x509 accordingly',
    );
  }
  return {
    hostname: parameter('tls-hostname') ?? ('host' in address ? address.host : 'localhost'),
    verifyPeer: verify !== '0',
    ...(certificates !== undefined && { certificates }),
    ...(pskFile !== undefined && { pskFile }),
    ...(user !== '' && { user }),
  };
}
