/** Send work requests (`ibv_send_wr`) as users write them, one shape per opcode. */

import { checkOptions, checkWhole, type OptionNames, shown } from '../core/arguments.js';
import { RoceError } from '../core/errors.js';
import { ACCESS_ALL, SEND_INLINE, WR_OPCODES } from '../memory/ring/enums.js';
import type { SendWqeFields, Sge } from '../memory/ring/work-queue.js';
import type { AddressHandle } from './address-handle.js';
import type { WrId } from './completion-queue.js';
import type { FastRegisterMemoryRegion, MemoryRegion } from './memory-region.js';
import type { MemoryWindow } from './memory-window.js';

/** What every send work request has. */
interface Common {
  /** Comes back in the completion. Default 0. */
  readonly wrId?: WrId;
  /** False: no completion on success. Default true. */
  readonly signaled?: boolean;
  /** Waits until all earlier READs and atomics of this QP are complete. */
  readonly fence?: boolean;
}

/** Where the data come from. */
interface Gather {
  /** Parts of registered memory, in order. Default: none, an empty message. */
  readonly sges?: readonly Sge[];
  /** Copied at once: the buffer may be reused when `postSend` returns. Instead of `sges`. */
  readonly inline?: Uint8Array;
  /** The receiver's armed-for-solicited completion queue fires. */
  readonly solicited?: boolean;
}

/** Where in the peer's memory. */
interface Remote {
  /** Virtual address of the first byte, 64 bits. */
  readonly remoteAddr: bigint;
  /** Key of the peer's region or window. */
  readonly rkey: number;
}

/** A send work request (`ibv_send_wr`): what all have in common, and what its opcode needs. */
export type SendWorkRequest = Common &
  (
    | ({
        /** Into a receive of the peer. */
        readonly opcode: 'SEND';
      } & Gather &
        Datagram)
    | ({
        /** Into a receive of the peer, with 32 bits in its completion. */
        readonly opcode: 'SEND_WITH_IMM';
        /** 32 bits without sign. */
        readonly immediate: number;
      } & Gather &
        Datagram)
    | ({
        /** Into a receive of the peer, one of whose keys becomes invalid. */
        readonly opcode: 'SEND_WITH_INV';
        /** Key of the peer. */
        readonly invalidateRkey: number;
      } & Gather)
    | ({
        /** Into the peer's memory; its program takes no part. */
        readonly opcode: 'RDMA_WRITE';
      } & Gather &
        Remote)
    | ({
        /** Into the peer's memory, and a receive of the peer completes with 32 bits. */
        readonly opcode: 'RDMA_WRITE_WITH_IMM';
        /** 32 bits without sign. */
        readonly immediate: number;
      } & Gather &
        Remote)
    | ({
        /** Out of the peer's memory. */
        readonly opcode: 'RDMA_READ';
        /** Where the data go; together they say how many. */
        readonly sges?: readonly Sge[];
      } & Remote)
    | ({
        /** Replaces 64 bits of the peer if they are as expected; `remoteAddr` is a multiple of 8. */
        readonly opcode: 'ATOMIC_CMP_AND_SWP';
        /** Eight bytes for the value before. */
        readonly sges: readonly Sge[];
        /** What is expected. */
        readonly compare: bigint;
        /** What replaces it. */
        readonly swap: bigint;
      } & Remote)
    | ({
        /** Adds to 64 bits of the peer; `remoteAddr` is a multiple of 8. */
        readonly opcode: 'ATOMIC_FETCH_AND_ADD';
        /** Eight bytes for the value before. */
        readonly sges: readonly Sge[];
        /** Modulo 2^64. */
        readonly add: bigint;
      } & Remote)
    | {
        /** Makes a key of this side invalid: of a fast-register region or a type 2 window. */
        readonly opcode: 'LOCAL_INV';
        /** Key of this side. */
        readonly invalidateRkey: number;
      }
    | {
        /** Opens a part of a region under the window's key. */
        readonly opcode: 'BIND_MW';
        /** Of the protection domain of the queue pair. */
        readonly mw: MemoryWindow;
        /** From `mw.nextRkey()`. */
        readonly rkey: number;
        /** Zero bytes of the region unbind. */
        readonly mr: MemoryRegion;
        /** First byte, counted from the start of the region. */
        readonly offset: number;
        /** Bytes. */
        readonly length: number;
        /** What the peer may do: flags of `Access`. */
        readonly access: number;
      }
    | {
        /** Maps a fast-register region onto a part of its memory. */
        readonly opcode: 'REG_MR';
        /** Free: not registered, or invalidated. */
        readonly mr: FastRegisterMemoryRegion;
        /** From `mr.nextKey()`. */
        readonly key: number;
        /** First byte, counted from the start of the memory. */
        readonly offset: number;
        /** Bytes. */
        readonly length: number;
        /** Virtual address of the first byte, as peers name it. */
        readonly iova: bigint;
        /** Flags of `Access`. */
        readonly access: number;
      }
  );

/** UD only: the destination. */
interface Datagram {
  /** Where the receiver is. */
  readonly ah?: AddressHandle;
  /** QPN of the receiver, 24 bits. */
  readonly remoteQpn?: number;
  /** Q_Key of the receiver, 32 bits. With bit 31 set, the queue pair's own Q_Key is sent instead (IBTA vol. 1 §10.2.5). */
  readonly remoteQkey?: number;
}

type FieldsOf<T> = T extends unknown ? keyof T : never;

/** The fields of all opcodes together. */
const FIELDS: OptionNames<Record<FieldsOf<SendWorkRequest>, unknown>> = {
  opcode: true,
  wrId: true,
  signaled: true,
  fence: true,
  sges: true,
  inline: true,
  solicited: true,
  remoteAddr: true,
  rkey: true,
  immediate: true,
  invalidateRkey: true,
  compare: true,
  swap: true,
  add: true,
  ah: true,
  remoteQpn: true,
  remoteQkey: true,
  mw: true,
  mr: true,
  key: true,
  offset: true,
  length: true,
  iova: true,
  access: true,
};

/** Throws ERR_ROCE_UNKNOWN_NAME for a field that no opcode has. */
export function checkFields(request: SendWorkRequest): void {
  checkOptions<Partial<Record<FieldsOf<SendWorkRequest>, unknown>>>('postSend', request, FIELDS);
}

/** Requests that send data from here. */
const CARRIES_DATA: ReadonlySet<SendWorkRequest['opcode']> = new Set([
  'SEND',
  'SEND_WITH_IMM',
  'SEND_WITH_INV',
  'RDMA_WRITE',
  'RDMA_WRITE_WITH_IMM',
]);

/** Once: a shift of BigInts makes a new one each time. */
const U64_END = 1n << 64n;

function u64(name: string, value: bigint): bigint {
  if (typeof value !== 'bigint' || value < 0n || value >= U64_END) {
    const hint = 'it must be a bigint that fits 64 bits without sign';
    throw new RoceError('ERR_ROCE_OUT_OF_RANGE', `${name} is ${shown(value)}`, hint);
  }
  return value;
}

function u32(name: string, value: number): number {
  return checkWhole(name, value, 0, 0xffff_ffff);
}

function u24(name: string, value: number): number {
  return checkWhole(name, value, 0, 0xff_ffff);
}

function access(value: number): number {
  return checkWhole('access', value, 0, ACCESS_ALL);
}

/** Throws ERR_ROCE_OUT_OF_RANGE for numbers that do not fit their field, ERR_ROCE_CONFLICT for inline data where there can be none. */
export function encodeSend(request: SendWorkRequest, flags: number): SendWqeFields {
  // An opcode the table does not know still becomes a work request: the NIC completes it in error, as hardware does.
  const fields: SendWqeFields = {
    opcode: WR_OPCODES[request.opcode] ?? 0xff,
    flags,
    sges: [],
    inlineBytes: undefined,
    remoteAddr: 0n,
    rkey: 0,
    immediate: 0,
    compareAdd: 0n,
    swap: 0n,
    ah: 0,
    remoteQpn: 0,
    qkey: 0,
    handle: 0,
    access: 0,
  };
  if ('sges' in request && request.sges !== undefined) fields.sges = request.sges;
  if ('inline' in request && request.inline !== undefined) {
    if (!CARRIES_DATA.has(request.opcode)) {
      const hint = 'only SEND and RDMA_WRITE take their data inline';
      throw new RoceError('ERR_ROCE_CONFLICT', `inline data with ${request.opcode}`, hint);
    }
    fields.inlineBytes = request.inline;
    fields.flags |= SEND_INLINE;
  }
  if ('remoteAddr' in request) {
    fields.remoteAddr = u64('remoteAddr', request.remoteAddr);
    fields.rkey = u32('rkey', request.rkey);
  }
  switch (request.opcode) {
    case 'SEND':
    case 'SEND_WITH_IMM':
      fields.ah = request.ah?.handle ?? 0;
      fields.remoteQpn = u24('remoteQpn', request.remoteQpn === undefined ? 0 : request.remoteQpn);
      fields.qkey = u32('remoteQkey', request.remoteQkey === undefined ? 0 : request.remoteQkey);
      if (request.opcode === 'SEND_WITH_IMM') fields.immediate = u32('immediate', request.immediate);
      break;
    case 'RDMA_WRITE_WITH_IMM':
      fields.immediate = u32('immediate', request.immediate);
      break;
    case 'SEND_WITH_INV':
      fields.immediate = u32('invalidateRkey', request.invalidateRkey);
      break;
    case 'ATOMIC_CMP_AND_SWP':
      fields.compareAdd = u64('compare', request.compare);
      fields.swap = u64('swap', request.swap);
      break;
    case 'ATOMIC_FETCH_AND_ADD':
      fields.compareAdd = u64('add', request.add);
      break;
    case 'LOCAL_INV':
      fields.rkey = u32('invalidateRkey', request.invalidateRkey);
      break;
    case 'BIND_MW':
      fields.handle = request.mw.handle;
      fields.rkey = u32('rkey', request.rkey);
      fields.access = access(request.access);
      fields.remoteAddr = u64('address', request.mr.addr + BigInt(request.offset));
      fields.sges = [{ addr: 0n, length: request.length, lkey: request.mr.lkey }];
      break;
    case 'REG_MR':
      fields.handle = request.mr.handle;
      fields.rkey = u32('key', request.key);
      fields.access = access(request.access);
      fields.remoteAddr = u64('iova', request.iova);
      fields.sges = [{ addr: BigInt(request.offset), length: request.length, lkey: 0 }];
      break;
  }
  return fields;
}
