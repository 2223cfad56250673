/** Where a server listens: `unix:PATH`, `HOST:PORT` or `[IPV6]:PORT`. */

import { RoceError } from '../../core/errors.js';
import { parseCount } from '../../core/units.js';

/** Where a server listens: `unix:PATH`, `HOST:PORT` or `[IPV6]:PORT`, taken apart. */
export type SocketAddress =
  | {
      /** Path of a Unix socket. */
      readonly path: string;
    }
  | {
      /** Address or name for TCP. */
      readonly host: string;
      /** TCP port. */
      readonly port: number;
    };

/** Throws ERR_ROCE_MALFORMED, or ERR_ROCE_OUT_OF_RANGE for a port above 65535. */
export function parseSocketAddress(text: string): SocketAddress {
  const [, path] = /^unix:(.+)$/.exec(text) ?? [];
  if (path !== undefined) return { path };
  const [, bracketed, plain, port] = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d+)$/.exec(text) ?? [];
  if (port === undefined) {
    throw new RoceError('ERR_ROCE_MALFORMED', `'${text}' is not an address: unix:PATH or HOST:PORT`);
  }
  return { host: bracketed ?? plain, port: parseCount(port, 0, 65535) };
}
