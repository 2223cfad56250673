/**
 * pcapng blocks to packets (IETF draft-ietf-opsawg-pcapng): both byte orders, several sections and interfaces, any
 * timestamp resolution. Unknown blocks and options are skipped, as the draft asks.
 */

import { LOW_HALF } from '../../core/word-order.js';
import type { CaptureDamage, CapturedPacket, CaptureParser } from './captured-packet.js';
import {
  BLOCK_ENHANCED_PACKET,
  BLOCK_INTERFACE_DESCRIPTION,
  BLOCK_PACKET,
  BLOCK_SECTION_HEADER,
  BLOCK_SIMPLE_PACKET,
  BYTE_ORDER_MAGIC,
  OPTION_COMMENT,
  OPTION_END,
  OPTION_IF_TSOFFSET,
  OPTION_IF_TSRESOL,
  padded,
} from './pcapng-blocks.js';

const BLOCK_BYTES_MIN = 12;
const ENHANCED_BYTES = 20;
const NS_PER_SECOND = 1_000_000_000n;
/** Puts two halves of 32 bits together. */
const TICKS = new BigUint64Array(1);
const TICK_HALVES = new Uint32Array(TICKS.buffer);

interface InterfaceState {
  readonly linkType: number;
  readonly snapLength: number;
  readonly ticksPerSecond: bigint;
  readonly tickNs: bigint | undefined;
  readonly offsetNs: bigint;
}

interface Block {
  readonly view: DataView;
  readonly littleEndian: boolean;
  readonly start: number;
  readonly end: number;
}

class DamagedBlock extends Error {}

export class PcapngParser implements CaptureParser {
  consumed = 0;
  damage: CaptureDamage | undefined;
  #littleEndian = true;
  #interfaces: InterfaceState[] = [];

  *packets(file: Uint8Array, isLast: boolean): Generator<CapturedPacket, void> {
    const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
    let offset = 0;
    this.consumed = 0;
    while (offset < file.length) {
      try {
        if (file.length - offset < BLOCK_BYTES_MIN) {
          if (!isLast) return;
          throw new DamagedBlock('the file ends inside a block header');
        }
        const isSection = view.getUint32(offset) === BLOCK_SECTION_HEADER; // the same in both byte orders
        const littleEndian = isSection ? byteOrder(view, offset) : this.#littleEndian;
        const length = view.getUint32(offset + 4, littleEndian);
        if (length < BLOCK_BYTES_MIN || length % 4 !== 0)
          throw new DamagedBlock(`block length ${length} is impossible`);
        if (length > file.length - offset) {
          if (!isLast) return;
          throw new DamagedBlock('the file ends inside a block');
        }
        if (view.getUint32(offset + length - 4, littleEndian) !== length) {
          throw new DamagedBlock('the two lengths of a block differ');
        }
        if (isSection) {
          this.#littleEndian = littleEndian;
          this.#interfaces = [];
        }
        const type = view.getUint32(offset, littleEndian);
        const start = offset + 8;
        const end = offset + length - 4;
        if (type === BLOCK_ENHANCED_PACKET || type === BLOCK_PACKET) {
          yield this.#enhancedPacket(file, view, { start, end, isObsolete: type === BLOCK_PACKET });
        } else {
          const block = { view, littleEndian, start, end };
          if (type === BLOCK_INTERFACE_DESCRIPTION) this.#interfaces.push(interfaceOf(block));
          else if (type === BLOCK_SIMPLE_PACKET) yield simplePacket(file, block, this.#interfaces);
        }
        offset += length;
        this.consumed = offset;
      } catch (error) {
        if (!(error instanceof DamagedBlock)) throw error;
        this.damage = { offset, reason: error.message };
        return;
      }
    }
  }

  /** The obsolete packet block differs in the interface number: 16 bits, before 16 bits of a drop count. */
  #enhancedPacket(
    file: Uint8Array,
    view: DataView,
    { start, end, isObsolete }: { readonly start: number; readonly end: number; readonly isObsolete: boolean },
  ): CapturedPacket {
    const littleEndian = this.#littleEndian;
    need(start, end, ENHANCED_BYTES);
    const interfaceId = isObsolete ? view.getUint16(start, littleEndian) : view.getUint32(start, littleEndian);
    const state = describedInterface(this.#interfaces, interfaceId);
    TICK_HALVES[LOW_HALF] = view.getUint32(start + 8, littleEndian);
    TICK_HALVES[1 - LOW_HALF] = view.getUint32(start + 4, littleEndian);
    const captured = view.getUint32(start + 12, littleEndian);
    need(start, end, ENHANCED_BYTES + captured);
    const dataStart = start + ENHANCED_BYTES;
    const dataEnd = dataStart + padded(captured);
    return {
      timestampNs: timestampNs(TICKS[0], state),
      interfaceId,
      linkType: state.linkType,
      bytes: new Uint8Array(view.buffer, view.byteOffset + dataStart, captured), // half the time of a subarray
      originalLength: view.getUint32(start + 16, littleEndian),
      comment: dataEnd === end ? undefined : commentOf(file, { view, littleEndian, start, end }, dataEnd),
    };
  }
}

function byteOrder(view: DataView, offset: number): boolean {
  if (view.getUint32(offset + 8, true) === BYTE_ORDER_MAGIC) return true;
  if (view.getUint32(offset + 8, false) === BYTE_ORDER_MAGIC) return false;
  throw new DamagedBlock('a section header without byte-order magic');
}

function interfaceOf(block: Block): InterfaceState {
  const { view, littleEndian, start, end } = block;
  need(start, end, 8);
  let ticksPerSecond = 1_000_000n;
  let offsetSeconds = 0n;
  for (const { code, at, length } of options(block, start + 8)) {
    if (code === OPTION_IF_TSRESOL && length >= 1) {
      const resolution = view.getUint8(at);
      ticksPerSecond = resolution & 0x80 ? 2n ** BigInt(resolution & 0x7f) : 10n ** BigInt(resolution);
    } else if (code === OPTION_IF_TSOFFSET && length >= 8) {
      offsetSeconds = view.getBigInt64(at, littleEndian);
    }
  }
  const linkType = view.getUint16(start, littleEndian);
  return {
    linkType,
    snapLength: view.getUint32(start + 4, littleEndian),
    ticksPerSecond,
    tickNs: NS_PER_SECOND % ticksPerSecond === 0n ? NS_PER_SECOND / ticksPerSecond : undefined,
    offsetNs: offsetSeconds * NS_PER_SECOND,
  };
}

function commentOf(file: Uint8Array, block: Block, from: number): string | undefined {
  let comment: string | undefined;
  for (const { code, at, length } of options(block, from)) {
    if (code === OPTION_COMMENT) comment = new TextDecoder().decode(file.subarray(at, at + length));
  }
  return comment;
}

/** Each operation on a bigint allocates a new one, so there are as few as possible. */
function timestampNs(ticks: bigint, { ticksPerSecond, tickNs, offsetNs }: InterfaceState): bigint {
  const ns = tickNs === 1n ? ticks : tickNs === undefined ? (ticks * NS_PER_SECOND) / ticksPerSecond : ticks * tickNs;
  return offsetNs === 0n ? ns : ns + offsetNs;
}

function simplePacket(file: Uint8Array, block: Block, interfaces: readonly InterfaceState[]): CapturedPacket {
  const { view, littleEndian, start, end } = block;
  need(start, end, 4);
  const { linkType, snapLength } = describedInterface(interfaces, 0);
  const originalLength = view.getUint32(start, littleEndian);
  const captured = Math.min(originalLength, end - start - 4, snapLength === 0 ? Number.POSITIVE_INFINITY : snapLength);
  const bytes = file.subarray(start + 4, start + 4 + captured);
  return { timestampNs: 0n, interfaceId: 0, linkType, bytes, originalLength, comment: undefined };
}

function describedInterface(interfaces: readonly InterfaceState[], id: number): InterfaceState {
  const state = interfaces[id];
  if (state === undefined) throw new DamagedBlock(`a packet of interface ${id}, which the file does not describe`);
  return state;
}

function need(start: number, end: number, bytes: number): void {
  if (end - start < bytes) throw new DamagedBlock('a block is shorter than its contents');
}

function* options(block: Block, from: number): Generator<{ code: number; at: number; length: number }> {
  let offset = from;
  while (offset + 4 <= block.end) {
    const code = block.view.getUint16(offset, block.littleEndian);
    const length = block.view.getUint16(offset + 2, block.littleEndian);
    if (code === OPTION_END || offset + 4 + length > block.end) return;
    yield { code, at: offset + 4, length };
    offset += 4 + padded(length);
  }
}
