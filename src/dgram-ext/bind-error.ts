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

/** macOS and the BSDs give the loopback interface one address; Linux gives it 127.0.0.0/8. */
const NO_LOOPBACK_ADDRESS =
  'the loopback interface lacks the address: add it with `ifconfig lo0 alias ADDRESS` (macOS) or `ip address add ADDRESS dev lo` (Linux)';

export function bindError(code: string, host: string, udpPort: number, cause?: unknown): RoceError {
  const hint = hintFor(code, host, udpPort);
  return new RoceError('ERR_ROCE_IO', `cannot bind UDP ${formatHostPort(host, udpPort)}: ${code}`, hint, { cause });
}

function hintFor(code: string, host: string, udpPort: number): string | undefined {
  if (code === 'EADDRINUSE' && udpPort === ROCE_UDP_PORT) return ROCE_PORT_IN_USE;
  if (code === 'EADDRNOTAVAIL' && host.startsWith('127.')) return NO_LOOPBACK_ADDRESS.replaceAll('ADDRESS', host);
  return HINTS[code];
}
