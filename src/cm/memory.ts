import { RoceError } from '../core/errors.js';
import { MemoryRegion, MemorySlice } from '../verbs/memory-region.js';

/**
 * Bytes, or memory that was registered once (`connection.register`), whole or a slice of it. From the call of an
 * operation until its promise settles the memory is the NIC's (docs/how-to/write-a-program.md).
 */
export type Memory = Uint8Array | MemoryRegion | MemorySlice;

export function checkMemory(memory: Memory): void {
  if (memory instanceof Uint8Array || memory instanceof MemoryRegion || memory instanceof MemorySlice) return;
  throw new RoceError(
    'ERR_ROCE_INVALID_ARGUMENT',
    `data is bytes or a registered region, not a ${typeof memory}`,
    'pass a Buffer or Uint8Array: Buffer.from(text); or what connection.register() gave, or a slice of it',
  );
}

export function sliceOf(memory: Memory): MemorySlice | undefined {
  if (memory instanceof MemorySlice) return memory;
  return memory instanceof MemoryRegion ? memory.slice() : undefined;
}

export function bytesOf(memory: Memory): Buffer {
  const bytes = memory instanceof Uint8Array ? memory : memory.bytes;
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
}
