/** What a failed bind means to the person who started the endpoint. */

import { RoceError } from '../core/errors.js';

const HINTS: Readonly<Record<string, string>> = {
  EADDRINUSE:
    "another RoCE endpoint or Linux's rdma_rxe owns the port: end it, or choose another address (127.0.0.2) or UDP port",
  EADDRNOTAVAIL: 'no interface of this host has the address: `ip address` lists the ones there are',
  EACCES: 'the system forbids this port: ports below 1024 need privilege, RoCEv2 is 4791',
  EPERM: 'the system or its firewall forbids it',
  EMFILE: 'too many open files: raise `ulimit -n`',
  EAFNOSUPPORT: 'this host has no IPv6: use an IPv4 address',
};

/** ERR_ROCE_IO for errno `code` while binding `host`:`udpPort`. */
export function bindError(code: string, host: string, udpPort: number, cause?: unknown): RoceError {
  const where = host.includes(':') ? `[${host}]:${udpPort}` : `${host}:${udpPort}`;
  return new RoceError('ERR_ROCE_IO', `cannot bind UDP ${where}: ${code}`, HINTS[code], { cause });
}
