import { checkOneOf, checkOptions, checkWhole, type OptionNames, shown } from '../core/arguments.js';
import { RoceError } from '../core/errors.js';
import { checkAccess } from '../memory/ring/attribute-ranges.js';
import { WR_OPCODES } from '../memory/ring/enums.js';
import { MESSAGE_BYTES_MAX, type SendQueue, type Sge } from '../memory/ring/work-queue.js';
import { FETH_GLOBAL, FETH_LEVEL_SHIFT, FETH_PERSISTENT } from '../packet/roce.js';
import type { AddressHandle } from './address-handle.js';
import type { WrId } from './completion-queue.js';
import type { FastRegisterMemoryRegion, MemoryRegion } from './memory-region.js';
import type { MemoryWindow } from './memory-window.js';

/** What every send work request has. */
interface Common {
  /** Comes back in the completion. Default 0. */
  readonly wrId?: WrId | undefined;
  /** False: no completion on success. Default true. */
  readonly signaled?: boolean | undefined;
  /** Waits until all earlier READs and atomics of this QP are complete. */
  readonly fence?: boolean | undefined;
}

/** Where the data come from. */
interface Gather {
  /** Parts of registered memory, in order. Default: none, an empty message. */
  readonly sges?: readonly Sge[] | undefined;
  /** Copied at once: the buffer may be reused when `postSend` returns. Instead of `sges`. */
  readonly inline?: Uint8Array | undefined;
  /** The receiver's armed-for-solicited completion queue fires. */
  readonly solicited?: boolean | undefined;
}

/** Where in the peer's memory. */
interface Remote {
  /** Virtual address of the first byte, 64 bits. */
  readonly remoteAddr: bigint;
  /** Key of the peer's region or window. */
  readonly rkey: number;
}

/** A send work request (`ibv_send_wr`): common fields, and those of its opcode. */
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
        readonly sges?: readonly Sge[] | undefined;
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
    | ({
        /** Eight bytes into the peer's memory, of which no reader sees a part; `remoteAddr` is a multiple of 8. */
        readonly opcode: 'ATOMIC_WRITE';
      } & Omit<Gather, 'solicited'> &
        Remote)
    | ({
        /** Done when earlier WRITEs and ATOMIC_WRITEs to this memory of the peer have taken effect there. */
        readonly opcode: 'FLUSH';
        /** Bytes from `remoteAddr`, 0 to 2^31. */
        readonly length: number;
        /** `GLOBAL`: all that read the memory see the data. `PERSISTENT`: they outlive a power failure. */
        readonly placement: 'GLOBAL' | 'PERSISTENT';
        /** `REGION`: the whole region of the key; address and length do not matter. Default `RANGE`. */
        readonly level?: 'RANGE' | 'REGION' | undefined;
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
  readonly ah?: AddressHandle | undefined;
  /** QPN of the receiver, 24 bits. */
  readonly remoteQpn?: number | undefined;
  /**
   * Q_Key of the receiver, 32 bits. With bit 31 set, the queue pair's own Q_Key is sent instead (IBTA vol. 1 §10.2.5).
   */
  readonly remoteQkey?: number | undefined;
}

type FieldsOf<T> = T extends unknown ? keyof T : never;

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
  placement: true,
  level: true,
};

export function checkFields(request: SendWorkRequest): void {
  checkOptions<Partial<Record<FieldsOf<SendWorkRequest>, unknown>>>('postSend', request, FIELDS);
}

const CARRIES_DATA: ReadonlySet<SendWorkRequest['opcode']> = new Set([
  'SEND',
  'SEND_WITH_IMM',
  'SEND_WITH_INV',
  'RDMA_WRITE',
  'RDMA_WRITE_WITH_IMM',
  'ATOMIC_WRITE',
]);

const LEVELS = ['RANGE', 'REGION'] as const;
const PLACEMENTS = ['GLOBAL', 'PERSISTENT'] as const;
const FETH_OF_PLACEMENT = [FETH_GLOBAL, FETH_PERSISTENT] as const;

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

/**
 * Writes the element at `index` of the queue. Throws ERR_ROCE_OUT_OF_RANGE for numbers that do not fit their field,
 * ERR_ROCE_CONFLICT for inline data that is not allowed, and the errors of the queue.
 */
export function writeSend(sq: SendQueue, index: number, request: SendWorkRequest, flags: number): void {
  // An unknown opcode still becomes a work request: the NIC completes it in error, as hardware does.
  sq.begin(index, WR_OPCODES[request.opcode] ?? 0xff, flags);
  if ('remoteAddr' in request) sq.putRemote(u64('remoteAddr', request.remoteAddr), u32('rkey', request.rkey));
  switch (request.opcode) {
    case 'SEND_WITH_IMM':
    case 'SEND': {
      const { ah, remoteQpn = 0, remoteQkey = 0 } = request;
      sq.putReceiver(ah?.handle ?? 0, u24('remoteQpn', remoteQpn), u32('remoteQkey', remoteQkey));
      if (request.opcode === 'SEND_WITH_IMM') sq.putImmediate(u32('immediate', request.immediate));
      break;
    }
    case 'RDMA_WRITE_WITH_IMM':
      sq.putImmediate(u32('immediate', request.immediate));
      break;
    case 'SEND_WITH_INV':
      sq.putImmediate(u32('invalidateRkey', request.invalidateRkey));
      break;
    case 'ATOMIC_CMP_AND_SWP':
      sq.putOperands(u64('compare', request.compare), u64('swap', request.swap));
      break;
    case 'ATOMIC_FETCH_AND_ADD':
      sq.putOperands(u64('add', request.add), 0n);
      break;
    case 'FLUSH': {
      const { length, placement, level = 'RANGE' } = request;
      const feth = FETH_OF_PLACEMENT[checkOneOf('placement', placement, PLACEMENTS)];
      const selected = checkOneOf('level', level, LEVELS) << FETH_LEVEL_SHIFT;
      sq.putFlush(feth | selected, checkWhole('length', length, 0, MESSAGE_BYTES_MAX));
      break;
    }
    case 'LOCAL_INV':
      sq.putRemote(0n, u32('invalidateRkey', request.invalidateRkey));
      break;
    case 'BIND_MW': {
      const { mw, rkey, mr, offset, length } = request;
      sq.putRemote(u64('address', mr.addr + BigInt(offset)), u32('rkey', rkey));
      sq.putBinding(mw.handle, checkAccess('access', request.access));
      sq.putSges([{ addr: 0n, length, lkey: mr.lkey }]);
      break;
    }
    case 'REG_MR': {
      const { mr, key, offset, length, iova } = request;
      sq.putRemote(u64('iova', iova), u32('key', key));
      sq.putBinding(mr.handle, checkAccess('access', request.access));
      sq.putSges([{ addr: BigInt(offset), length, lkey: 0 }]);
      break;
    }
  }
  if ('inline' in request && request.inline !== undefined) {
    if (!CARRIES_DATA.has(request.opcode)) {
      const hint = 'only SEND, RDMA_WRITE and ATOMIC_WRITE take their data inline';
      throw new RoceError('ERR_ROCE_CONFLICT', `inline data with ${request.opcode}`, hint);
    }
    sq.putInline(request.inline);
  } else if ('sges' in request && request.sges !== undefined) sq.putSges(request.sges);
}
