/**
 * UDP sockets with the options that node:dgram cannot set, made through koffi (an optional dependency; Linux only). Node adopts the
 * file descriptor and does the I/O.
 *
 * Why each option: IP_MTU_DISCOVER=DO on an unconnected socket makes Linux send IPv4 identification 0 with DF, so that the ICRC, which
 * covers both, can be computed beforehand. UDP_NO_CHECK6_RX lets in the zero UDP checksums that RoCEv2 senders put over IPv6.
 */

import { createRequire } from 'node:module';
import { getSystemErrorName } from 'node:util';
import type { IpAddress } from '../packet/address.js';
import { bindError } from './bind-error.js';

const AF_INET = 2;
const AF_INET6 = 10;
const SOCK_DGRAM_CLOEXEC_NONBLOCK = 2 | 0o2000000 | 0o4000;
const SOL_SOCKET = 1;
const SO_SNDBUF = 7;
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

interface LibC {
  socket(family: number, type: number, protocol: number): number;
  setsockopt(fd: number, level: number, option: number, value: Uint8Array, length: number): number;
  bind(fd: number, address: Uint8Array, length: number): number;
  close(fd: number): number;
  errno(): number;
}

let loaded: LibC | string | undefined;

/** The C library, or the reason why it cannot be called. Loaded once, on first use. */
function libC(): LibC | string {
  loaded ??= loadLibC();
  return loaded;
}

function loadLibC(): LibC | string {
  if (process.platform !== 'linux') return `socket options are set on Linux only, this is ${process.platform}`;
  try {
    const koffi = createRequire(import.meta.url)('koffi') as typeof import('koffi');
    const lib = koffi.load(null);
    return {
      socket: lib.func('int socket(int, int, int)') as LibC['socket'],
      setsockopt: lib.func('int setsockopt(int, int, int, const void *, uint32_t)') as LibC['setsockopt'],
      bind: lib.func('int bind(int, const void *, uint32_t)') as LibC['bind'],
      close: lib.func('int close(int)') as LibC['close'],
      errno: () => koffi.errno(),
    };
  } catch (error) {
    return `koffi cannot be loaded: ${(error as Error).message.split('\n')[0]}`;
  }
}

/** Undefined when sockets can be prepared for exact ICRCs; otherwise the reason why not, for people. */
export function nativeUdpAvailable(): string | undefined {
  const lib = libC();
  return typeof lib === 'string' ? lib : undefined;
}

/**
 * A bound, unconnected, non-blocking UDP socket with every option above. Returns its file descriptor, which the caller must hand to
 * Node or close. Buffer sizes beyond the system's limit are granted to privileged processes and clamped for others.
 * Throws ERR_ROCE_IO when the address cannot be bound. Only call it when {@link nativeUdpAvailable} gives undefined.
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

  const socketAddress = socketAddressOf(address, udpPort);
  if (!prepared || lib.bind(fd, socketAddress, socketAddress.length) !== 0) {
    const errno = lib.errno();
    lib.close(fd);
    throw bindError(getSystemErrorName(-errno), address.text, udpPort);
  }
  return fd;
}

/** Closes a descriptor that Node has not adopted. */
export function closeNativeSocket(fd: number): void {
  const lib = libC();
  if (typeof lib !== 'string') lib.close(fd);
}

/** `struct sockaddr_in` or `sockaddr_in6`: the family in host order (Linux on little-endian machines), the rest in network order. */
function socketAddressOf(address: IpAddress, udpPort: number): Uint8Array {
  const bytes = new Uint8Array(address.family === 4 ? 16 : 28);
  bytes[0] = address.family === 4 ? AF_INET : AF_INET6;
  bytes[2] = udpPort >> 8;
  bytes[3] = udpPort;
  bytes.set(address.bytes, address.family === 4 ? 4 : 8);
  return bytes;
}
