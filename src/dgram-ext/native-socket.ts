/**
 * UDP sockets with the options that node:dgram cannot set, made through koffi (an optional dependency; Linux only).
 * Node adopts the file descriptor and does the I/O.
 *
 * Why each option: IP_MTU_DISCOVER=DO on an unconnected socket makes Linux send IPv4 identification 0 with DF, so that
 * the ICRC, which covers both, can be computed beforehand. UDP_NO_CHECK6_RX lets in the zero UDP checksums that RoCEv2
 * senders put over IPv6.
 */

import { getSystemErrorName } from 'node:util';
import type { IpAddress } from '../packet/address.js';
import { bindError } from './bind-error.js';
import { type LibC, libC } from './libc.js';
import {
  AF_INET,
  AF_INET6,
  SOCKET_ADDRESS_BYTES,
  socketAddressLength,
  socketAddressPort,
  writeSocketAddress,
} from './socket-address.js';

const SOCK_DGRAM_CLOEXEC_NONBLOCK = 2 | 0o2000000 | 0o4000;
const SOL_SOCKET = 1;
const SO_SNDBUF = 7;
const SO_REUSEADDR = 2;
const SO_RCVBUF = 8;
const SO_SNDBUFFORCE = 32;
const SO_RCVBUFFORCE = 33;
const IPPROTO_IP = 0;
const IP_MTU_DISCOVER = 10;
const IPPROTO_UDP = 17;
const UDP_NO_CHECK6_RX = 102;
const IPPROTO_IPV6 = 41;
const IPV6_MTU_DISCOVER = 23;
const IPV6_V6ONLY = 26;
const PMTUDISC_DO = 2;
const IP_RECVTOS = 13;
const IPV6_RECVTCLASS = 66;
const UDP_SEGMENT = 103;
const UDP_GRO = 104;

/** Undefined if sockets can be prepared for exact ICRCs; otherwise the reason. */
export function nativeUdpAvailable(): string | undefined {
  const lib = libC();
  return typeof lib === 'string' ? lib : undefined;
}

/**
 * A bound, unconnected, non-blocking UDP socket with every option above. Buffer sizes beyond the system's limit are
 * granted to privileged processes and clamped for others.
 */
export function openNativeSocket(
  address: IpAddress,
  udpPort: number,
  receiveBufferBytes: number,
  sendBufferBytes: number,
): number {
  const lib = libC();
  if (typeof lib === 'string') throw new TypeError(lib);
  const fd = lib.socket(address.family === 4 ? AF_INET : AF_INET6, SOCK_DGRAM_CLOEXEC_NONBLOCK, 0);
  if (fd < 0) throw bindError(getSystemErrorName(-lib.errno()), address.text, udpPort);

  const value = new Uint8Array(4);
  const set = (level: number, option: number, number: number): boolean => {
    new DataView(value.buffer).setInt32(0, number, true);
    return lib.setsockopt(fd, level, option, value, value.length) === 0;
  };
  if (!set(SOL_SOCKET, SO_RCVBUFFORCE, receiveBufferBytes)) set(SOL_SOCKET, SO_RCVBUF, receiveBufferBytes);
  if (!set(SOL_SOCKET, SO_SNDBUFFORCE, sendBufferBytes)) set(SOL_SOCKET, SO_SNDBUF, sendBufferBytes);
  const prepared =
    address.family === 4
      ? set(IPPROTO_IP, IP_MTU_DISCOVER, PMTUDISC_DO)
      : set(IPPROTO_IPV6, IPV6_V6ONLY, 1) &&
        set(IPPROTO_IPV6, IPV6_MTU_DISCOVER, PMTUDISC_DO) &&
        set(IPPROTO_UDP, UDP_NO_CHECK6_RX, 1);

  const socketAddress = new Uint8Array(socketAddressLength(address.family));
  writeSocketAddress(socketAddress, 0, address, udpPort);
  if (!prepared || lib.bind(fd, socketAddress, socketAddress.length) !== 0) {
    const errno = lib.errno();
    lib.close(fd);
    throw bindError(getSystemErrorName(-errno), address.text, udpPort);
  }
  return fd;
}

/**
 * No other process may bind the socket's port: Node (libuv) allows it on descriptors that it adopts, and then any user
 * could send from our port.
 */
export function forbidSharing(fd: number): void {
  (libC() as LibC).setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, new Uint8Array(4), 4);
}

export function closeNativeSocket(fd: number): void {
  const lib = libC();
  if (typeof lib !== 'string') lib.close(fd);
}

export interface SocketAbilities {
  readonly segmentation: boolean;
  readonly coalescing: boolean;
  readonly trafficClass: boolean;
}

export function enableBatching(fd: number, family: 4 | 6): SocketAbilities {
  const lib = libC() as LibC;
  const set = (level: number, option: number, value: number) =>
    lib.setsockopt(fd, level, option, Uint8Array.of(value, 0, 0, 0), 4) === 0;
  return {
    segmentation: set(IPPROTO_UDP, UDP_SEGMENT, 0), // Only enables it: each message carries its own segment size.
    coalescing: set(IPPROTO_UDP, UDP_GRO, 1),
    trafficClass: family === 4 ? set(IPPROTO_IP, IP_RECVTOS, 1) : set(IPPROTO_IPV6, IPV6_RECVTCLASS, 1),
  };
}

export function boundUdpPort(fd: number): number {
  const address = new Uint8Array(SOCKET_ADDRESS_BYTES);
  (libC() as LibC).getsockname(fd, address, Uint8Array.of(SOCKET_ADDRESS_BYTES, 0, 0, 0));
  return socketAddressPort(address, 0);
}

export function receiveBufferBytesOf(fd: number): number {
  const value = new Uint8Array(4);
  (libC() as LibC).getsockopt(fd, SOL_SOCKET, SO_RCVBUF, value, Uint8Array.of(4, 0, 0, 0));
  return new DataView(value.buffer).getInt32(0, true);
}
