import { type HostPort, parseHostPort } from '../../core/host-port.js';

/** Where a server listens: `unix:PATH`, `HOST:PORT` or `[IPV6]:PORT`, taken apart. */
export type SocketAddress =
  | {
      /** Path of a Unix socket. */
      readonly path: string;
    }
  | HostPort;

export function parseSocketAddress(text: string): SocketAddress {
  const [, path] = /^unix:(.+)$/.exec(text) ?? [];
  if (path !== undefined) return { path };
  return parseHostPort(text, 0);
}
