/**
 * Commands, answers and events of /dev/infiniband/rdma_cm, ABI 4 (rdma/rdma_user_cm.h, rdma/ib_user_verbs.h,
 * rdma/ib_user_sa.h), little-endian. Functions build what the kernel returns.
 */

import { IpAddress } from 'rocev2/internal/packet';

export const CMD_CREATE_ID = 0;
export const CMD_DESTROY_ID = 1;
export const CMD_BIND_IP = 2;
export const CMD_RESOLVE_IP = 3;
export const CMD_RESOLVE_ROUTE = 4;
export const CMD_QUERY_ROUTE = 5;
export const CMD_CONNECT = 6;
export const CMD_LISTEN = 7;
export const CMD_ACCEPT = 8;
export const CMD_REJECT = 9;
export const CMD_DISCONNECT = 10;
export const CMD_INIT_QP_ATTR = 11;
export const CMD_GET_EVENT = 12;
export const CMD_SET_OPTION = 14;
export const CMD_NOTIFY = 15;
export const CMD_MIGRATE_ID = 18;

export const CM_ADDR_RESOLVED = 0;
export const CM_ADDR_ERROR = 1;
export const CM_ROUTE_RESOLVED = 2;
export const CM_CONNECT_REQUEST = 4;
export const CM_CONNECT_RESPONSE = 5;
export const CM_UNREACHABLE = 7;
export const CM_REJECTED = 8;
export const CM_ESTABLISHED = 9;
export const CM_DISCONNECTED = 10;

export const PS_TCP = 0x0106;
export const PS_UDP = 0x0111;

export const FRAME_BYTES = 512;
export const FRAME_HEADER_BYTES = 8;
export const CONNECT_ID_OFFSET = 272;
export const ACCEPT_PARAM_OFFSET = 8;
export const ACCEPT_ID_OFFSET = 280;
export const SOCKADDR_BYTES = 28;

const AF_INET = 2;
const AF_INET6 = 10;
const PRIVATE_DATA_MAX = 256;
const EVENT_BYTES = 336;
const EVENT_PARAM_OFFSET = 20;
const UD_PRIVATE_DATA_OFFSET = 40;
const ROUTE_BYTES = 208;
const PATH_BYTES = 64;
const QP_ATTR_BYTES = 144;
const HOP_LIMIT = 64;
const PKEY = 0xffff;
const EXACTLY = 2;
const NO_INDEX = 0xffff_ffff;

/** An address of a command; `address` is undefined for one that means any. */
export interface CmAddress {
  readonly address: IpAddress | undefined;
  readonly port: number;
}

/** Undefined for another address family; librdmacm tries AF_IB first. */
export function readCmAddress(view: DataView, offset: number): CmAddress | undefined {
  const family = view.getUint16(offset, true);
  if (family !== AF_INET && family !== AF_INET6) return undefined;
  const [start, length] = family === AF_INET ? [4, 4] : [8, 16];
  const bytes = new Uint8Array(view.buffer, view.byteOffset + offset + start, length).slice();
  const isAny = bytes.every((byte) => byte === 0);
  return { address: isAny ? undefined : IpAddress.fromBytes(bytes), port: view.getUint16(offset + 2) };
}

function writeCmAddress(bytes: Buffer, offset: number, { bytes: address }: IpAddress, port: number): void {
  const isIp4 = address.length === 4;
  bytes.writeUInt16LE(isIp4 ? AF_INET : AF_INET6, offset);
  bytes.writeUInt16BE(port, offset + 2);
  bytes.set(address, offset + (isIp4 ? 4 : 8));
}

/** Parameters of a connection in CONNECT and ACCEPT, and in events of connected services. */
export interface ConnectionParameters {
  readonly qpn: number;
  readonly qkey: number;
  readonly privateData: Uint8Array;
  readonly srq: number;
  readonly responderResources: number;
  readonly initiatorDepth: number;
  readonly flowControl: number;
  readonly retryCount: number;
  readonly rnrRetryCount: number;
}

const PARAMETER_BYTES = ['srq', 'responderResources', 'initiatorDepth', 'flowControl', 'retryCount', 'rnrRetryCount'];
const PARAMETERS_OFFSET = 265;

export function readParameters(view: DataView, offset: number): ConnectionParameters & { readonly isValid: boolean } {
  const u8 = (at: number) => view.getUint8(offset + at);
  const numbers = PARAMETER_BYTES.map((name, i) => [name, u8(PARAMETERS_OFFSET + i)]);
  return {
    ...(Object.fromEntries(numbers) as Omit<ConnectionParameters, 'qpn' | 'qkey' | 'privateData'>),
    qpn: view.getUint32(offset, true),
    qkey: view.getUint32(offset + 4, true),
    privateData: readPrivateData(view, offset + 8, u8(8 + PRIVATE_DATA_MAX)),
    isValid: u8(PARAMETERS_OFFSET + PARAMETER_BYTES.length) !== 0,
  };
}

export function readPrivateData(view: DataView, offset: number, length: number): Uint8Array {
  return new Uint8Array(view.buffer, view.byteOffset + offset, length).slice();
}

export interface CmEventHead {
  readonly uid: bigint;
  readonly id: number;
  readonly event: number;
  readonly status?: number;
}

export function buildEvent({ uid, id, event, status = 0 }: CmEventHead): Buffer {
  const bytes = Buffer.alloc(EVENT_BYTES);
  bytes.writeBigUInt64LE(uid, 0);
  bytes.writeUInt32LE(id, 8);
  bytes.writeUInt32LE(event, 12);
  bytes.writeInt32LE(status, 16);
  return bytes;
}

/** An event with what the peer says about a connection. */
export function buildConnectionEvent(head: CmEventHead, parameters: Partial<ConnectionParameters>): Buffer {
  const bytes = buildEvent(head);
  const { qpn = 0, qkey = 0, privateData = new Uint8Array(0) } = parameters;
  bytes.writeUInt32LE(qpn, EVENT_PARAM_OFFSET);
  bytes.writeUInt32LE(qkey, EVENT_PARAM_OFFSET + 4);
  bytes.set(privateData, EVENT_PARAM_OFFSET + 8);
  bytes[EVENT_PARAM_OFFSET + 8 + PRIVATE_DATA_MAX] = privateData.length;
  const numbers = parameters as Readonly<Record<string, number | undefined>>;
  for (const [i, name] of PARAMETER_BYTES.entries()) {
    bytes[EVENT_PARAM_OFFSET + PARAMETERS_OFFSET + i] = numbers[name] ?? 0;
  }
  return bytes;
}

/** An event of a datagram service. */
export function buildDatagramEvent(
  head: CmEventHead,
  { qpn, qkey, remote, privateData }: { qpn: number; qkey: number; remote: IpAddress; privateData: Uint8Array },
): Buffer {
  const bytes = buildEvent(head);
  bytes.writeUInt32LE(qpn, EVENT_PARAM_OFFSET);
  bytes.writeUInt32LE(qkey, EVENT_PARAM_OFFSET + 4);
  writeAddressVector(bytes, EVENT_PARAM_OFFSET + 8, remote, 0);
  bytes.set(privateData, EVENT_PARAM_OFFSET + UD_PRIVATE_DATA_OFFSET);
  bytes[EVENT_PARAM_OFFSET + UD_PRIVATE_DATA_OFFSET + PRIVATE_DATA_MAX] = privateData.length;
  return bytes;
}

/** struct ib_uverbs_ah_attr */
function writeAddressVector(bytes: Buffer, offset: number, remote: IpAddress, trafficClass: number): void {
  bytes.set(remote.gid, offset);
  bytes[offset + 21] = HOP_LIMIT;
  bytes[offset + 22] = trafficClass;
  bytes[offset + 29] = 1; // is_global
  bytes[offset + 30] = 1; // port_num
}

/** struct ib_uverbs_qp_attr */
export interface KernelQpAttr {
  readonly mask: number;
  readonly state: number;
  readonly accessFlags?: number;
  readonly qkey?: number;
  readonly remote?: IpAddress;
  readonly dscp?: number;
  readonly pathMtuCode?: number;
  readonly destQpn?: number | undefined;
  readonly rqPsn?: number | undefined;
  readonly sqPsn?: number | undefined;
  readonly maxRdAtomic?: number | undefined;
  readonly maxDestRdAtomic?: number | undefined;
  readonly minRnrTimer?: number | undefined;
  readonly timeout?: number | undefined;
  readonly retryCnt?: number | undefined;
  readonly rnrRetry?: number | undefined;
}

export function buildQpAttr(attr: KernelQpAttr): Buffer {
  const bytes = Buffer.alloc(QP_ATTR_BYTES);
  const { mask, state, pathMtuCode, qkey, rqPsn, sqPsn, destQpn, accessFlags } = attr;
  const words = [mask, state, 0, pathMtuCode, 0, qkey, rqPsn, sqPsn, destQpn, accessFlags];
  for (const [i, word] of words.entries()) bytes.writeUInt32LE((word ?? 0) >>> 0, 4 * i);
  if (attr.remote !== undefined) writeAddressVector(bytes, 40, attr.remote, (attr.dscp ?? 0) << 2);
  const { maxRdAtomic, maxDestRdAtomic, minRnrTimer, timeout, retryCnt, rnrRetry } = attr;
  const numbers = [maxRdAtomic, maxDestRdAtomic, minRnrTimer, 1, timeout, retryCnt, rnrRetry];
  for (const [i, number] of numbers.entries()) bytes[130 + i] = number ?? 0;
  return bytes;
}

/** struct rdma_ucm_query_route_resp; without `nodeGuid` the identifier is bound to no device. */
export function buildRoute(route: {
  readonly nodeGuid: Uint8Array | undefined;
  readonly local: { readonly address: IpAddress; readonly port: number };
  readonly remote: { readonly address: IpAddress; readonly port: number } | undefined;
  readonly pathMtuCode: number;
}): Buffer {
  const bytes = Buffer.alloc(ROUTE_BYTES);
  const { nodeGuid, local, remote, pathMtuCode } = route;
  const addresses = 8 + 2 * PATH_BYTES;
  writeCmAddress(bytes, addresses, local.address, local.port);
  const rest = addresses + 2 * SOCKADDR_BYTES;
  if (nodeGuid !== undefined) {
    bytes.set(nodeGuid, 0);
    bytes[rest + 4] = 1; // port_num
  }
  if (remote !== undefined) {
    writeCmAddress(bytes, addresses + SOCKADDR_BYTES, remote.address, remote.port);
    writePath(bytes, 8, local.address, remote.address, pathMtuCode);
    bytes.writeUInt32LE(1, rest);
  }
  bytes.writeUInt32LE(NO_INDEX, rest + 8);
  return bytes;
}

/** struct ib_user_path_rec */
function writePath(bytes: Buffer, offset: number, local: IpAddress, remote: IpAddress, pathMtuCode: number): void {
  bytes.set(remote.gid, offset);
  bytes.set(local.gid, offset + 16);
  bytes.writeUInt32LE(1, offset + 44); // reversible
  bytes.writeUInt32LE(pathMtuCode, offset + 48);
  bytes.writeUInt16BE(PKEY, offset + 52);
  bytes[offset + 54] = HOP_LIMIT;
  bytes[offset + 58] = EXACTLY;
  bytes[offset + 59] = EXACTLY;
}
