/**
 * How connection management names IP endpoints (IBTA annex A11, "RDMA IP CM Service"): the service ID encodes protocol
 * and port, and the private data of a REQ or SIDR_REQ begin with a header of both addresses and the source port.
 */

import { checkKind, shown } from '../core/arguments.js';
import { RoceError } from '../core/errors.js';
import type { RandomSource } from '../core/random.js';
import { IpAddress } from '../packet/address.js';
import { bits, bytes, type Layout, readFields, u8, u16, writeFields } from './field-layout.js';
import { PRIVATE_DATA_BYTES } from './messages.js';

const RDMA_PS_TCP = 0x0106n;
const RDMA_PS_UDP = 0x0111n;

/** Q_Key of queue pairs of RDMA_PS_UDP (`RDMA_UDP_QKEY` in Linux). */
export const UDP_QKEY = 0x01234567;
/** Source ports of requests: the dynamic range (RFC 6335). */
const DYNAMIC_PORT_MIN = 49152;
const DYNAMIC_PORTS = 16384;

/** The service ID a listener on `port` of RDMA_PS_TCP has: 0x0000000001061c06 for rping's 7174. */
export function tcpServiceId(port: number): bigint {
  return (RDMA_PS_TCP << 16n) | BigInt(port);
}

/** The service ID a datagram service on `port` of RDMA_PS_UDP has: 0x0000000001111c06 for udaddy's 7174. */
export function udpServiceId(port: number): bigint {
  return (RDMA_PS_UDP << 16n) | BigInt(port);
}

export function dynamicPort(random: RandomSource): number {
  return DYNAMIC_PORT_MIN + (random.u32() % DYNAMIC_PORTS);
}

export function checkPort(port: number): void {
  if (Number.isInteger(port) && port >= 1 && port <= 65535) return;
  throw new RoceError('ERR_ROCE_OUT_OF_RANGE', `${shown(port)} is not a port number`, 'it must be 1 to 65535');
}

/** The address of a peer as programs pass it. Throws ERR_ROCE_MALFORMED for text that is not an address. */
export function remoteAddress(local: IpAddress, remote: IpAddress | string): IpAddress {
  const address = typeof remote === 'string' ? IpAddress.parse(remote) : remote;
  const isAddress = address?.bytes instanceof Uint8Array && address.gid instanceof Uint8Array;
  checkKind('the remote address', address, isAddress, "an IpAddress, or its text such as '192.0.2.1'");
  checkFamily(local, address);
  return address;
}

function checkFamily(local: IpAddress, remote: IpAddress): void {
  if (remote.family === local.family) return;
  throw new RoceError('ERR_ROCE_ADDRESS_FAMILY', `${remote} cannot be reached from ${local}: other address family`);
}

const HEADER = {
  version: u8(0),
  ipVersion: bits(1, 0, 4),
  sourcePort: u16(2),
  source: bytes(4, 16),
  destination: bytes(20, 16),
} as const satisfies Layout;
const HEADER_BYTES = 36;

export const REQUEST_DATA_BYTES = PRIVATE_DATA_BYTES.REQ - HEADER_BYTES;
export const SERVICE_REQUEST_DATA_BYTES = PRIVATE_DATA_BYTES.SIDR_REQ - HEADER_BYTES;

export interface IpEndpoints {
  readonly source: IpAddress;
  readonly destination: IpAddress;
  readonly sourcePort: number;
}

export function encodeIpPrivateData(endpoints: IpEndpoints, userData: Uint8Array): Uint8Array {
  const data = new Uint8Array(HEADER_BYTES + userData.length);
  const { source, destination, sourcePort } = endpoints;
  writeFields(
    HEADER,
    { version: 0, ipVersion: source.family, sourcePort, source: inField(source), destination: inField(destination) },
    data,
  );
  data.set(userData, HEADER_BYTES);
  return data;
}

export function parseIpPrivateData(data: Uint8Array): (IpEndpoints & { userData: Uint8Array }) | undefined {
  const { version, ipVersion, sourcePort, source, destination } = readFields(HEADER, data);
  if (version !== 0 || (ipVersion !== 4 && ipVersion !== 6)) return undefined;
  const address = (field: Uint8Array) => IpAddress.fromBytes(ipVersion === 4 ? field.subarray(12) : field);
  return {
    source: address(source),
    destination: address(destination),
    sourcePort,
    userData: data.slice(HEADER_BYTES),
  };
}

/** 16 bytes; IPv4 in the last four, and not as a v4-mapped address. */
function inField(address: IpAddress): Uint8Array {
  const field = new Uint8Array(16);
  field.set(address.bytes, 16 - address.bytes.length);
  return field;
}
