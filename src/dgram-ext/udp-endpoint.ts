/** The address of a UDP socket as text: `127.0.0.1:5000`, `[::1]:5000`. */

import { formatHostPort, parseHostPort } from '../core/host-port.js';
import { IpAddress } from '../packet/address.js';

export interface UdpEndpoint {
  readonly host: IpAddress;
  /** 0..65535; 0 lets the system choose when it is bound. */
  readonly port: number;
}

/**
 * Throws ERR_ROCE_MALFORMED, ERR_ROCE_OUT_OF_RANGE for a port above 65535. Port 0 is allowed: the system then chooses.
 */
export function parseUdpEndpoint(text: string): UdpEndpoint {
  const { host, port } = parseHostPort(text, 0);
  return { host: IpAddress.parse(host), port };
}

export function formatUdpEndpoint({ host, port }: UdpEndpoint): string {
  return formatHostPort(host.text, port);
}

/** 127.0.0.0/8 or ::1. */
export function isLoopback(address: IpAddress): boolean {
  return address.text === '::1' || (address.family === 4 && address.bytes[0] === 127);
}
