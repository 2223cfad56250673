/** The Connect command and its 1024 bytes of data (NVMe base specification 2.0 §6.3). */

import type { NvmeCommand } from './capsule.js';
import { NQN_BYTES_MAX } from './opcodes.js';
import { refuse, STATUS } from './status.js';

export const CONNECT_DATA_BYTES = 1024;
export const CNTLID_DYNAMIC = 0xffff;

const CATTR_NO_SQ_FLOW = 1 << 2;
/** The parameter that is wrong is in the data, not in the command. */
const IN_DATA = 1 << 16;

const AT = { QID: 42, SQSIZE: 44, CATTR: 46, KATO: 48 } as const;
const DATA_AT = { HOSTID: 0, CNTLID: 16, SUBNQN: 256, HOSTNQN: 512 } as const;
const NQN_FIELD_BYTES = 256;

export interface ConnectRequest {
  readonly qid: number;
  readonly entries: number;
  /** Completions carry no submission queue head. */
  readonly noSqFlow: boolean;
  readonly keepAliveMs: number;
  readonly hostId: Buffer;
  readonly cntlid: number;
  readonly subnqn: string;
  readonly hostnqn: string;
}

/** Dword 0 of the answer to Connect: the host must authenticate itself on the queue (AUTHREQ.ATR). */
export const AUTHENTICATION_REQUIRED = 1 << 17;

/** Security protocol of Authentication Send and Receive, with its specific fields: NVMe over Fabrics, 1, 1. */
const SECURITY_PROTOCOL = Buffer.of(1, 1, 0xe9);
/** Bytes of the longest message: two results of the longest hash, and a public value of 8192 bits. */
export const AUTHENTICATION_BYTES_MAX = 4096;

export function authenticationBytes({ bytes }: NvmeCommand): number {
  const length = bytes.readUInt32LE(44);
  const isKnown = SECURITY_PROTOCOL.equals(bytes.subarray(41, 44));
  if (!isKnown || length === 0 || length > AUTHENTICATION_BYTES_MAX) throw refuse(STATUS.INVALID_FIELD);
  return length;
}

export function writeAuthentication(sqe: Buffer, length: number): void {
  sqe.set(SECURITY_PROTOCOL, 41);
  sqe.writeUInt32LE(length, 44);
}

export type ConnectParameter = 'qid' | 'entries' | 'hostid' | 'cntlid' | 'subnqn' | 'hostnqn';

const OFFSETS: Readonly<Record<ConnectParameter, number>> = {
  qid: AT.QID,
  entries: AT.SQSIZE,
  hostid: DATA_AT.HOSTID | IN_DATA,
  cntlid: DATA_AT.CNTLID | IN_DATA,
  subnqn: DATA_AT.SUBNQN | IN_DATA,
  hostnqn: DATA_AT.HOSTNQN | IN_DATA,
};

export function refuseParameter(
  parameter: ConnectParameter,
  status: number = STATUS.CONNECT_INVALID_PARAMETERS,
): Error {
  return refuse(status, OFFSETS[parameter]);
}

export function refusedParameter(result: number): ConnectParameter | undefined {
  return (Object.keys(OFFSETS) as ConnectParameter[]).find((parameter) => OFFSETS[parameter] === result);
}

export function readConnect({ bytes }: NvmeCommand, data: Uint8Array): ConnectRequest {
  if (bytes.readUInt16LE(40) !== 0) throw refuse(STATUS.CONNECT_INCOMPATIBLE_FORMAT);
  const view = Buffer.from(data.buffer, data.byteOffset, data.length);
  return {
    qid: bytes.readUInt16LE(AT.QID),
    entries: bytes.readUInt16LE(AT.SQSIZE) + 1,
    noSqFlow: (bytes[AT.CATTR] & CATTR_NO_SQ_FLOW) !== 0,
    keepAliveMs: bytes.readUInt32LE(AT.KATO),
    hostId: Buffer.from(view.subarray(DATA_AT.HOSTID, DATA_AT.HOSTID + 16)),
    cntlid: view.readUInt16LE(DATA_AT.CNTLID),
    subnqn: readNqn(view, DATA_AT.SUBNQN, 'subnqn'),
    hostnqn: readNqn(view, DATA_AT.HOSTNQN, 'hostnqn'),
  };
}

function readNqn(data: Buffer, at: number, parameter: ConnectParameter): string {
  const length = data.subarray(at, at + NQN_FIELD_BYTES).indexOf(0);
  if (length < 1 || length > NQN_BYTES_MAX) throw refuseParameter(parameter);
  return data.toString('utf8', at, at + length);
}

export function writeConnect(sqe: Buffer, request: ConnectRequest): Buffer {
  sqe.writeUInt16LE(request.qid, AT.QID);
  sqe.writeUInt16LE(request.entries - 1, AT.SQSIZE);
  sqe[AT.CATTR] = request.noSqFlow ? CATTR_NO_SQ_FLOW : 0;
  sqe.writeUInt32LE(request.keepAliveMs, AT.KATO);
  const data = Buffer.alloc(CONNECT_DATA_BYTES);
  request.hostId.copy(data, DATA_AT.HOSTID);
  data.writeUInt16LE(request.cntlid, DATA_AT.CNTLID);
  data.write(request.subnqn, DATA_AT.SUBNQN, 'utf8');
  data.write(request.hostnqn, DATA_AT.HOSTNQN, 'utf8');
  return data;
}
