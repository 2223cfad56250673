/** NBD URIs, as libnbd, qemu and nbdkit write them (NetworkBlockDevice/nbd, doc/uri.md), without TLS. */

import { RoceError } from '../../core/errors.js';
import type { SocketAddress } from './socket-address.js';

const PORT_DEFAULT = 10809;

interface NbdTarget {
  readonly address: SocketAddress;
  readonly exportName: string;
}

/** `nbd://HOST[:PORT]/EXPORT` or `nbd+unix:///EXPORT?socket=PATH`. Throws ERR_ROCE_MALFORMED. */
export function parseNbdUri(text: string): NbdTarget {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const exportName = decodeURIComponent(url?.pathname.replace(/^\//, '') ?? '');
  const socket = url?.searchParams.get('socket');
  if (url?.protocol === 'nbd+unix:' && socket) return { address: { path: socket }, exportName };
  if (url?.protocol === 'nbd:' && url.hostname !== '') {
    const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
    return { address: { host, port: url.port === '' ? PORT_DEFAULT : Number(url.port) }, exportName };
  }
  throw new RoceError(
    'ERR_ROCE_MALFORMED',
    `'${text}' is not an NBD URI`,
    'nbd://HOST:PORT/EXPORT or nbd+unix:///EXPORT?socket=PATH',
  );
}
