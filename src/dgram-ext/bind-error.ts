import { RoceError } from '../core/errors.js';
import { formatHostPort } from '../core/host-port.js';
import { ROCE_UDP_PORT } from '../port/datagram.js';

const HINTS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'another program has the port: end it, or choose another port',
  EADDRNOTAVAIL: 'no interface of this host has the address: `ip address` lists the ones there are',
  EACCES: 'the system forbids this port: ports below 1024 need privilege, RoCEv2 is 4791',
  EPERM: 'the system or its firewall forbids it',
  EMFILE: 'too many open files: raise `ulimit -n`',
  EAFNOSUPPORT: 'this host has no IPv6: use an IPv4 address',
};

const ROCE_PORT_IN_USE =
  "another RoCE endpoint or Linux's rdma_rxe owns the port: end it, or choose another address (127.0.0.2) or UDP port";

export function bindError(code: string, host: string, udpPort: number, cause?: unknown): RoceError {
  const hint = code === 'EADDRINUSE' && udpPort === ROCE_UDP_PORT ? ROCE_PORT_IN_USE : HINTS[code];
  return new RoceError('ERR_ROCE_IO', `cannot bind UDP ${formatHostPort(host, udpPort)}: ${code}`, hint, { cause });
}
