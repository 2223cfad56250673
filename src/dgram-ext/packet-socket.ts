/**
 * An AF_PACKET socket (packet(7), CAP_NET_RAW): promiscuous, without frames that this host sends by the interface
 * itself, checksums and trains unfinished ({@link completeFrame}).
 */

import { getSystemErrorName } from 'node:util';
import { RoceError } from '../core/errors.js';
import { type LibC, libC } from './libc.js';

const AF_PACKET = 17;
const SOCK_RAW_CLOEXEC_NONBLOCK = 3 | 0o2000000 | 0o4000;
const ETH_P_ALL = 3;
const SOCKADDR_LL_BYTES = 20;
const SOL_SOCKET = 1;
const SO_SNDBUF = 7;
const SO_RCVBUF = 8;
const SO_SNDBUFFORCE = 32;
const SO_RCVBUFFORCE = 33;
const SOL_PACKET = 263;
const PACKET_ADD_MEMBERSHIP = 1;
const PACKET_AUXDATA = 8;
const PACKET_VNET_HDR = 15;
const PACKET_IGNORE_OUTGOING = 23;
const PACKET_MR_PROMISC = 1;
const BUFFER_BYTES = 16 * 1024 * 1024;

export function openPacketSocket(interfaceName: string): number {
  const lib = libC();
  if (typeof lib === 'string') throw new RoceError('ERR_ROCE_UNSUPPORTED', `no packet sockets here: ${lib}`);
  const index = lib.if_nametoindex(interfaceName);
  if (index === 0) {
    throw new RoceError(
      'ERR_ROCE_NOT_FOUND',
      `there is no network interface '${interfaceName}' in this network namespace`,
      "'ip link' lists them",
    );
  }
  // Without a protocol nothing arrives until it is bound.
  const fd = lib.socket(AF_PACKET, SOCK_RAW_CLOEXEC_NONBLOCK, 0);
  if (fd < 0) throw refused(lib, interfaceName);
  try {
    prepare(lib, fd, index, interfaceName);
  } catch (error) {
    lib.close(fd);
    throw error;
  }
  return fd;
}

function prepare(lib: LibC, fd: number, index: number, interfaceName: string): void {
  const set = (level: number, option: number, value: Uint8Array) =>
    lib.setsockopt(fd, level, option, value, value.length) === 0;
  const number = (value: number) => new Uint8Array(Int32Array.of(value).buffer);
  // Root of a user namespace alone is held to the limits of the system.
  if (!set(SOL_SOCKET, SO_RCVBUFFORCE, number(BUFFER_BYTES))) set(SOL_SOCKET, SO_RCVBUF, number(BUFFER_BYTES));
  if (!set(SOL_SOCKET, SO_SNDBUFFORCE, number(BUFFER_BYTES))) set(SOL_SOCKET, SO_SNDBUF, number(BUFFER_BYTES));
  // struct packet_mreq: interface, type, length and bytes of an address.
  const promiscuous = new Uint8Array(16);
  const view = new DataView(promiscuous.buffer);
  view.setInt32(0, index, true);
  view.setUint16(4, PACKET_MR_PROMISC, true);
  const prepared =
    set(SOL_PACKET, PACKET_VNET_HDR, number(1)) &&
    set(SOL_PACKET, PACKET_AUXDATA, number(1)) &&
    set(SOL_PACKET, PACKET_IGNORE_OUTGOING, number(1)) &&
    set(SOL_PACKET, PACKET_ADD_MEMBERSHIP, promiscuous);
  // struct sockaddr_ll: family, protocol (big-endian), interface.
  const address = new Uint8Array(SOCKADDR_LL_BYTES);
  const at = new DataView(address.buffer);
  at.setUint16(0, AF_PACKET, true);
  at.setUint16(2, ETH_P_ALL);
  at.setInt32(4, index, true);
  if (!prepared || lib.bind(fd, address, address.length) !== 0) throw refused(lib, interfaceName);
}

function refused(lib: LibC, interfaceName: string): RoceError {
  const name = getSystemErrorName(-lib.errno());
  const hint = name === 'EPERM' ? 'run as root, or give the process CAP_NET_RAW' : undefined;
  return new RoceError('ERR_ROCE_IO', `cannot open a packet socket on '${interfaceName}': ${name}`, hint);
}
