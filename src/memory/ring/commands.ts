/**
 * Both sides encode and decode by this table, so that the NIC may be in another thread. Field kinds: `u32` number,
 * `u53` byte counts and offsets as numbers, `u64` bigint, `f64` any number, `f64s` a block of such, `gid` 16 bytes,
 * `name` a name of a scheme: its length, then ASCII.
 */

import { shown } from '../../core/arguments.js';
import { RoceError } from '../../core/errors.js';

import { PARAMETERS_MAX } from '../../core/parameters.js';

/** How a field is in an element: see above. All are little-endian. */
export type FieldKind = 'u32' | 'u53' | 'u64' | 'f64' | 'f64s' | 'gid' | 'name';

export const F64_BLOCK_LENGTH = PARAMETERS_MAX;
/** Bytes of a field of kind `name`; names have at most one less. */
const NAME_BYTES = 32;

/** Attribute mask bits of modifyQp (`ibv_qp_attr_mask`). */
export const QP_ATTR_STATE = 1 << 0;
export const QP_ATTR_CUR_STATE = 1 << 1;
export const QP_ATTR_EN_SQD_ASYNC_NOTIFY = 1 << 2;
export const QP_ATTR_ACCESS_FLAGS = 1 << 3;
export const QP_ATTR_PKEY_INDEX = 1 << 4;
export const QP_ATTR_PORT = 1 << 5;
export const QP_ATTR_QKEY = 1 << 6;
/** Address vector: `remoteGid`, `remoteUdpPort`, `dscp` and `ecn`. */
export const QP_ATTR_AV = 1 << 7;
export const QP_ATTR_PATH_MTU = 1 << 8;
export const QP_ATTR_TIMEOUT = 1 << 9;
export const QP_ATTR_RETRY_CNT = 1 << 10;
export const QP_ATTR_RNR_RETRY = 1 << 11;
export const QP_ATTR_RQ_PSN = 1 << 12;
export const QP_ATTR_MAX_QP_RD_ATOMIC = 1 << 13;
export const QP_ATTR_ALT_PATH = 1 << 14;
export const QP_ATTR_MIN_RNR_TIMER = 1 << 15;
export const QP_ATTR_SQ_PSN = 1 << 16;
export const QP_ATTR_MAX_DEST_RD_ATOMIC = 1 << 17;
export const QP_ATTR_PATH_MIG_STATE = 1 << 18;
export const QP_ATTR_DEST_QPN = 1 << 20;
/** Ours: the recovery scheme and its parameters, agreed when connecting; with DEST_QPN only. */
export const QP_ATTR_RECOVERY = 1 << 24;
/** Ours: how many packets the peer's socket can hold; with DEST_QPN only. */
export const QP_ATTR_INFLIGHT = 1 << 25;
export const QP_ATTR_RATE_CONTROL = 1 << 26;
export const QP_ATTR_REMOTE_SOURCE_PORT = 1 << 27;
/** Ours: how long a silence may last, as a timer code; 0 counts retries instead, as the standard does. */
export const QP_ATTR_TOTAL_TIMEOUT = 1 << 28;

const QP_ATTRIBUTES = {
  state: 'u32',
  curState: 'u32',
  enSqdAsyncNotify: 'u32',
  accessFlags: 'u32',
  pkeyIndex: 'u32',
  port: 'u32',
  qkey: 'u32',
  remoteGid: 'gid',
  remoteUdpPort: 'u32',
  dscp: 'u32',
  ecn: 'u32',
  pathMtu: 'u32',
  timeout: 'u32',
  totalTimeout: 'u32',
  retryCnt: 'u32',
  rnrRetry: 'u32',
  rqPsn: 'u32',
  maxRdAtomic: 'u32',
  minRnrTimer: 'u32',
  sqPsn: 'u32',
  maxDestRdAtomic: 'u32',
  destQpn: 'u32',
  recovery: 'name',
  recoveryParameters: 'f64s',
  inflightPackets: 'u32',
  remoteSourcePort: 'u32',
  rateControl: 'name',
  rateParameters: 'f64s',
} as const;

/** Every control operation: its number, and its fields in and out by name and kind. */
export const COMMANDS = {
  queryDevice: {
    code: 1,
    in: {},
    out: { gid: 'gid', udpPort: 'u32', sourcePort: 'u32', pathMtuMax: 'u32', receiveBudgetPackets: 'u32' },
  },
  allocPd: { code: 2, in: {}, out: { pd: 'u32' } },
  deallocPd: { code: 3, in: { pd: 'u32' }, out: {} },
  regMr: {
    code: 4,
    in: { pd: 'u32', memory: 'u32', offsetBytes: 'u53', lengthBytes: 'u53', iova: 'u64', access: 'u32' },
    out: { mr: 'u32', lkey: 'u32', rkey: 'u32' },
  },
  allocFastRegMr: {
    code: 5,
    in: { pd: 'u32', memory: 'u32', offsetBytes: 'u53', lengthBytes: 'u53' },
    out: { mr: 'u32', lkey: 'u32' },
  },
  deregMr: { code: 6, in: { mr: 'u32' }, out: {} },
  /** Keeps the keys. Not for regions of allocFastRegMr. */
  reregMr: {
    code: 32,
    in: { mr: 'u32', pd: 'u32', memory: 'u32', offsetBytes: 'u53', lengthBytes: 'u53', iova: 'u64', access: 'u32' },
    out: {},
  },
  allocMw: { code: 7, in: { pd: 'u32', type: 'u32' }, out: { mw: 'u32', rkey: 'u32' } },
  deallocMw: { code: 8, in: { mw: 'u32' }, out: {} },
  createCq: { code: 9, in: { memory: 'u32' }, out: { cq: 'u32' } },
  /** Completions that were not taken stay in the old memory, from which the application copies them. */
  resizeCq: { code: 33, in: { cq: 'u32', memory: 'u32' }, out: {} },
  destroyCq: { code: 10, in: { cq: 'u32' }, out: {} },
  createSrq: { code: 11, in: { pd: 'u32', memory: 'u32' }, out: { srq: 'u32' } },
  modifySrq: { code: 12, in: { srq: 'u32', limit: 'u32' }, out: {} },
  /** The application posts into the new memory from now on; the NIC copies what it has not taken from the old one. */
  resizeSrq: { code: 34, in: { srq: 'u32', memory: 'u32' }, out: {} },
  querySrq: { code: 35, in: { srq: 'u32' }, out: { limit: 'u32' } },
  destroySrq: { code: 13, in: { srq: 'u32' }, out: {} },
  createQp: {
    code: 14,
    in: {
      pd: 'u32',
      type: 'u32',
      sendCq: 'u32',
      recvCq: 'u32',
      srq: 'u32',
      sqMemory: 'u32',
      rqMemory: 'u32',
      signalAll: 'u32',
    },
    out: { qpn: 'u32' },
  },
  modifyQp: { code: 15, in: { qpn: 'u32', mask: 'u32', ...QP_ATTRIBUTES }, out: {} },
  queryQp: {
    code: 16,
    in: { qpn: 'u32' },
    out: {
      ...QP_ATTRIBUTES,
      sqDraining: 'u32',
      sourcePort: 'u32',
      rateBps: 'f64',
      targetRateBps: 'f64',
      windowBytes: 'f64',
      alpha: 'f64',
    },
  },
  destroyQp: { code: 17, in: { qpn: 'u32' }, out: {} },
  createAh: { code: 18, in: { pd: 'u32', remoteGid: 'gid', remoteUdpPort: 'u32', dscp: 'u32' }, out: { ah: 'u32' } },
  destroyAh: { code: 19, in: { ah: 'u32' }, out: {} },
  /** No more requests of the peer are executed. `owed` is 1: answers to earlier ones are still to be sent. */
  settleQp: { code: 20, in: { qpn: 'u32' }, out: { owed: 'u32' } },
  /** From now on the connected queue pair writes the telemetry page in this memory. */
  watchQp: { code: 30, in: { qpn: 'u32', memory: 'u32' }, out: {} },
  inspectQp: {
    code: 31,
    in: { qpn: 'u32' },
    out: {
      unackedPsn: 'u32',
      sendPsn: 'u32',
      newPsn: 'u32',
      expectedPsn: 'u32',
      msn: 'u32',
      windowPackets: 'u32',
      postedWqes: 'u32',
      startedWqes: 'u32',
      outstandingReads: 'u32',
      retriesLeft: 'u32',
      rnrRetriesLeft: 'u32',
      waitsForReceiver: 'u32',
    },
  },
} as const satisfies Record<string, { code: number; in: Record<string, FieldKind>; out: Record<string, FieldKind> }>;

export type CommandName = keyof typeof COMMANDS;

interface FieldValues {
  readonly u32: number;
  readonly u53: number;
  readonly u64: bigint;
  readonly f64: number;
  readonly f64s: Float64Array;
  readonly gid: Uint8Array;
  readonly name: string;
}
export type FieldValue = FieldValues[FieldKind];
type Fields<F> = { -readonly [K in keyof F]: F[K] extends FieldKind ? FieldValues[F[K]] : never };
export type CommandArgs<N extends CommandName> = Fields<(typeof COMMANDS)[N]['in']>;
export type CommandResult<N extends CommandName> = Fields<(typeof COMMANDS)[N]['out']>;
/** All attributes of a queue pair; those not in the mask are meaningless. */
export type QpAttributes = Fields<typeof QP_ATTRIBUTES>;

const NAMES_BY_CODE: ReadonlyMap<number, CommandName> = new Map(
  Object.entries(COMMANDS).map(([name, command]) => [command.code, name as CommandName]),
);

/** The command of this number; undefined for an unknown number. */
export function commandNameOf(code: number): CommandName | undefined {
  return NAMES_BY_CODE.get(code);
}

const FIELD_BYTES: Record<FieldKind, number> = {
  u32: 4,
  u53: 8,
  u64: 8,
  f64: 8,
  f64s: 8 * F64_BLOCK_LENGTH,
  gid: 16,
  name: NAME_BYTES,
};

const U32_MAX = 0xffffffff;

/** Checks the 32-bit fields of a command before they are written, because other values would be truncated silently. */
export function checkU32Fields(table: Record<string, FieldKind>, values: Record<string, FieldValue>): void {
  for (const [name, kind] of Object.entries(table)) {
    const value = values[name];
    if (kind !== 'u32' || (Number.isInteger(value) && (value as number) >= 0 && (value as number) <= U32_MAX)) continue;
    throw new RoceError(
      'ERR_ROCE_OUT_OF_RANGE',
      `${name} is ${shown(value)}`,
      `it must be a whole number from 0 to ${U32_MAX}`,
    );
  }
}

/** Writes the fields in table order from `offset`. Missing fields are a programming error caught by the types. */
export function encodeFields(
  view: DataView,
  offset: number,
  table: Record<string, FieldKind>,
  values: Record<string, FieldValue>,
): void {
  let o = offset;
  for (const [name, kind] of Object.entries(table)) {
    const value = values[name];
    if (kind === 'u32') view.setUint32(o, value as number, true);
    else if (kind === 'gid') new Uint8Array(view.buffer, view.byteOffset + o, 16).set(value as Uint8Array);
    else if (kind === 'f64') view.setFloat64(o, value as number, true);
    else if (kind === 'f64s') encodeBlock(view, o, value as Float64Array);
    else if (kind === 'name') encodeName(view, o, value as string);
    else view.setBigUint64(o, BigInt(value as number | bigint), true);
    o += FIELD_BYTES[kind];
  }
}

function encodeBlock(view: DataView, offset: number, block: Float64Array): void {
  for (let i = 0; i < block.length; i++) view.setFloat64(offset + 8 * i, block[i], true);
}

function encodeName(view: DataView, offset: number, name: string): void {
  view.setUint8(offset, name.length);
  for (let i = 0; i < name.length; i++) view.setUint8(offset + 1 + i, name.charCodeAt(i));
}

function decodeName(view: DataView, offset: number): string {
  const length = Math.min(view.getUint8(offset), NAME_BYTES - 1);
  return String.fromCharCode(...Array.from({ length }, (_, i) => view.getUint8(offset + 1 + i)));
}

/** Reads the fields in table order from `offset`; blocks and GIDs are copies. */
export function decodeFields(
  view: DataView,
  offset: number,
  table: Record<string, FieldKind>,
): Record<string, FieldValue> {
  const values: Record<string, FieldValue> = {};
  let o = offset;
  for (const [name, kind] of Object.entries(table)) {
    if (kind === 'u32') values[name] = view.getUint32(o, true);
    else if (kind === 'u53') values[name] = Number(view.getBigUint64(o, true));
    else if (kind === 'u64') values[name] = view.getBigUint64(o, true);
    else if (kind === 'f64') values[name] = view.getFloat64(o, true);
    else if (kind === 'f64s')
      values[name] = Float64Array.from({ length: F64_BLOCK_LENGTH }, (_, i) => view.getFloat64(o + 8 * i, true));
    else if (kind === 'name') values[name] = decodeName(view, o);
    else values[name] = new Uint8Array(view.buffer, view.byteOffset + o, 16).slice();
    o += FIELD_BYTES[kind];
  }
  return values;
}
