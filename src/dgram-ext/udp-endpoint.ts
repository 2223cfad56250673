/** The address of a UDP socket as text: `127.0.0.1:5000`, `[::1]:5000`. */

import { RoceError } from '../core/errors.js';
import { IpAddress } from '../packet/address.js';

/** An IP address and a UDP port. */
export interface UdpEndpoint {
  /** IP address of the socket. */
  readonly host: IpAddress;
  /** 0..65535; 0 lets the system choose when it is bound. */
  readonly port: number;
}

/** Throws ERR_ROCE_MALFORMED. Port 0 is allowed: the system then chooses. */
export function parseUdpEndpoint(text: string): UdpEndpoint {
  const parts = /^(?:\[([^\]]+)\]|([^:]+)):(\d{1,5})$/.exec(text);
  const port = Number(parts?.[3]);
  if (parts === null || port > 0xffff) {
    throw new RoceError(
      'ERR_ROCE_MALFORMED',
      `'${text}' is not an address with a UDP port`,
      'write 127.0.0.1:5000 or [::1]:5000',
    );
  }
  return { host: IpAddress.parse(parts[1] ?? parts[2]), port };
}

/** As {@link parseUdpEndpoint} reads it. */
export function formatUdpEndpoint({ host, port }: UdpEndpoint): string {
  return host.family === 6 ? `[${host.text}]:${port}` : `${host.text}:${port}`;
}

/** 127.0.0.0/8 or ::1. */
export function isLoopback(address: IpAddress): boolean {
  return address.text === '::1' || (address.family === 4 && address.bytes[0] === 127);
}
