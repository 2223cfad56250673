/** Memory that other processes can map, and that of others mapped here: what an engine link offers where it can. */

import type { ProcessName } from './grant-table.js';

/** A segment of another process, or a part of it. */
export interface PeerSegment {
  readonly pid: number;
  /** Descriptor of that process. */
  readonly fd: number;
  readonly kind: 'grants' | 'region';
  /** Of the whole segment. */
  readonly segmentBytes: number;
  /** The part: its first byte and its length. */
  readonly start: number;
  readonly bytes: number;
  readonly access: 'read' | 'write';
}

export interface MappedPart {
  /** Byte 0 is byte `start` of the segment. Where `access` is `read`, a store ends the process. */
  readonly bytes: Uint8Array;
  /** `bytes` must not be touched afterwards. */
  close(): void;
}

export interface MemoryMapping {
  readonly process: ProcessName;
  /** 32 random bits. */
  u32(): number;
  /**
   * Zeroed memory of at least `bytes` that peers can map; undefined where there is no more. It is freed once nothing
   * refers to it.
   */
  allocate(bytes: number): ArrayBufferLike | undefined;
  /** The descriptor of memory that {@link allocate} gave; undefined for other memory. */
  descriptorOf(memory: ArrayBufferLike): number | undefined;
  /** Memory for a table of grants, until `close`. */
  createTable(bytes: number): { readonly memory: ArrayBufferLike; readonly fd: number; close(): void } | undefined;
  /** Undefined: there is no such segment of a process of this user. */
  open(segment: PeerSegment): MappedPart | undefined;
  /** The same bytes, in a form that copies fast. */
  copyable(memory: ArrayBufferLike): ArrayBufferLike;
  /** Whether the process has ended. */
  hasEnded(process: ProcessName): boolean;
}
