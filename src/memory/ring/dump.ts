/**
 * Elements of the rings in readable form for debugging: the bytes in hex as in memory, then the fields
 * decoded, like the debug dumps of rdma-core's providers. Reads only what the NIC would read; allocates freely, not for
 * the packet path.
 */

import { toHex } from '../../core/bytes.js';
import { bigFromU64 } from '../../core/u64.js';
import { type CompletionRing, CQE_BYTES, Cqe } from './completion-ring.js';
import {
  SEND_FENCE,
  SEND_INLINE,
  SEND_SIGNALED,
  SEND_SOLICITED,
  statusName,
  WC_FLAG_GRH,
  WC_FLAG_SOLICITED,
  WC_FLAG_WITH_IMM,
  WC_FLAG_WITH_INV,
  WR_ATOMIC_CMP_AND_SWP,
  WR_ATOMIC_FETCH_AND_ADD,
  WR_ATOMIC_WRITE,
  WR_BIND_MW,
  WR_FLUSH,
  WR_LOCAL_INV,
  WR_OPCODES,
  WR_RDMA_READ,
  WR_RDMA_WRITE,
  WR_RDMA_WRITE_WITH_IMM,
  WR_REG_MR,
  WR_SEND_WITH_IMM,
  WR_SEND_WITH_INV,
  wcOpcodeName,
} from './enums.js';
import type { Ring } from './ring.js';
import { SEND_FIXED_BYTES, type SendQueue, SendWqe, SGE_BYTES, type SgeList } from './work-queue.js';

const BYTES_PER_LINE = 16;

const SEND_FLAG_NAMES: ReadonlyArray<readonly [number, string]> = [
  [SEND_FENCE, 'FENCE'],
  [SEND_SIGNALED, 'SIGNALED'],
  [SEND_SOLICITED, 'SOLICITED'],
  [SEND_INLINE, 'INLINE'],
];
const WC_FLAG_NAMES: ReadonlyArray<readonly [number, string]> = [
  [WC_FLAG_GRH, 'GRH'],
  [WC_FLAG_WITH_IMM, 'WITH_IMM'],
  [WC_FLAG_WITH_INV, 'WITH_INV'],
  [WC_FLAG_SOLICITED, 'SOLICITED'],
];

/** Any index can be shown: one whose slot has been used again shows the newer request. */
export function dumpWqe(queue: SendQueue, index: number): string {
  const wqe = new SendWqe();
  queue.read(index, wqe);
  const isInline = (wqe.flags & SEND_INLINE) !== 0;
  const dataBytes = isInline ? Math.min(wqe.messageBytes, queue.maxInlineBytes) : wqe.sges.count * SGE_BYTES;
  const where = place(queue, index);
  const lines = [
    `WQE ${index} ${where} ${position(queue, index)}`,
    ...hexLines(queue, index, SEND_FIXED_BYTES + dataBytes),
  ];
  lines.push(`  ${wrOpcodeName(wqe.opcode)} flags ${flagNames(wqe.flags, SEND_FLAG_NAMES)}, ${wqe.messageBytes} bytes`);
  lines.push(...operandLines(wqe).map((line) => `  ${line}`));
  if (isInline) lines.push(`  inline ${wqe.messageBytes} bytes`);
  else lines.push(...sgeLines(wqe.sges).map((line) => `  ${line}`));
  return lines.join('\n');
}

/** The completion at the free-running `index` of the ring, as lines of text. */
export function dumpCqe(ring: CompletionRing, index: number): string {
  const cqe = new Cqe();
  ring.readAt(index, cqe);
  const lines = [`CQE ${index} ${place(ring, index)} ${position(ring, index)}`, ...hexLines(ring, index, CQE_BYTES)];
  const queue = cqe.isReceive ? 'receive' : 'send';
  const work = cqe.isReceive ? `cookie ${cqe.index}` : `WQE ${cqe.index}`;
  lines.push(`  ${queue} completion of ${work} on QP ${hex(cqe.qpn, 6)}: ${statusName(cqe.status)} (${cqe.status})`);
  lines.push(`  ${wcOpcodeName(cqe.opcode)} flags ${flagNames(cqe.flags, WC_FLAG_NAMES)}, ${cqe.byteCount} bytes`);
  if ((cqe.flags & WC_FLAG_WITH_IMM) !== 0) lines.push(`  immediate ${hex(cqe.immediate, 8)}`);
  if ((cqe.flags & WC_FLAG_WITH_INV) !== 0) lines.push(`  invalidated rkey ${hex(cqe.immediate, 8)}`);
  if (cqe.sourceQpn !== 0) lines.push(`  source QP ${hex(cqe.sourceQpn, 6)}`);
  if (cqe.vendorError !== 0) lines.push(`  vendor error ${hex(cqe.vendorError, 2)}`);
  return lines.join('\n');
}

function place(ring: Ring, index: number): string {
  return `(slot ${index & ring.mask} of ${ring.depth})`;
}

function position(ring: Ring, index: number): string {
  const { producer, consumer } = ring;
  if ((index - consumer) >>> 0 < (producer - consumer) >>> 0) return 'waiting';
  return (producer - 1 - index) >>> 0 < ring.depth ? 'taken' : 'not written yet';
}

function hexLines(ring: Ring, index: number, count: number): string[] {
  const start = ring.offsetOf(index);
  const lines: string[] = [];
  for (let at = 0; at < count; at += BYTES_PER_LINE) {
    const bytes = ring.bytes.subarray(start + at, start + Math.min(at + BYTES_PER_LINE, count));
    const groups = Array.from({ length: Math.ceil(bytes.length / 4) }, (_, k) =>
      toHex(bytes.subarray(4 * k, 4 * k + 4)),
    );
    lines.push(`  ${at.toString(16).padStart(4, '0')}  ${groups.join(' ')}`);
  }
  return lines;
}

function operandLines(wqe: SendWqe): string[] {
  const remote = `remote ${hex64(wqe.remoteHigh, wqe.remoteLow)} rkey ${hex(wqe.rkey, 8)}`;
  switch (wqe.opcode) {
    case WR_RDMA_WRITE:
    case WR_RDMA_READ:
    case WR_ATOMIC_WRITE:
      return [remote];
    case WR_FLUSH:
      return [remote, `FETH ${hex(wqe.immediate, 8)}`];
    case WR_RDMA_WRITE_WITH_IMM:
      return [remote, `immediate ${hex(wqe.immediate, 8)}`];
    case WR_SEND_WITH_IMM:
      return [`immediate ${hex(wqe.immediate, 8)}`, ...datagramLines(wqe)];
    case WR_SEND_WITH_INV:
      return [`invalidate rkey ${hex(wqe.immediate, 8)}`];
    case WR_ATOMIC_CMP_AND_SWP:
      return [remote, `compare ${compareAdd(wqe)} swap ${hex64(wqe.swapHigh, wqe.swapLow)}`];
    case WR_ATOMIC_FETCH_AND_ADD:
      return [remote, `add ${compareAdd(wqe)}`];
    case WR_LOCAL_INV:
      return [`invalidate key ${hex(wqe.rkey, 8)}`];
    case WR_BIND_MW:
      return [`window ${wqe.handle} new rkey ${hex(wqe.rkey, 8)} base ${base(wqe)} access ${hex(wqe.access, 2)}`];
    case WR_REG_MR:
      return [`region ${wqe.handle} new key ${hex(wqe.rkey, 8)} base ${base(wqe)} access ${hex(wqe.access, 2)}`];
    default:
      return datagramLines(wqe);
  }
}

function datagramLines(wqe: SendWqe): string[] {
  if (wqe.ah === 0) return [];
  return [`address handle ${wqe.ah} remote QP ${hex(wqe.remoteQpn, 6)} Q_Key ${hex(wqe.qkey, 8)}`];
}

function sgeLines(sges: SgeList): string[] {
  return Array.from(
    { length: sges.count },
    (_, i) => `sge[${i}] ${hex64(sges.high[i], sges.low[i])} ${sges.lengths[i]} bytes lkey ${hex(sges.lkeys[i], 8)}`,
  );
}

function compareAdd(wqe: SendWqe): string {
  return hex64(wqe.compareAddHigh, wqe.compareAddLow);
}

function base(wqe: SendWqe): string {
  return hex64(wqe.remoteHigh, wqe.remoteLow);
}

function wrOpcodeName(opcode: number): string {
  return Object.entries(WR_OPCODES).find(([, number]) => number === opcode)?.[0] ?? `opcode ${opcode}`;
}

function flagNames(flags: number, names: ReadonlyArray<readonly [number, string]>): string {
  const set = names.filter(([bit]) => (flags & bit) !== 0).map(([, name]) => name);
  return set.length === 0 ? 'none' : set.join('|');
}

function hex(value: number, digits: number): string {
  return `0x${value.toString(16).padStart(digits, '0')}`;
}

function hex64(high: number, low: number): string {
  return `0x${bigFromU64(high, low).toString(16).padStart(16, '0')}`;
}
