import type { FileHandle } from 'node:fs/promises';
import { open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { CHECKED_BLOCK_BYTES } from './block-device.js';

export const STRIDE_BYTES = 1 << 20;

export async function readFully(file: FileHandle, into: Uint8Array, position: number): Promise<void> {
  for (let at = 0; at < into.length; ) {
    const { bytesRead } = await file.read(into, at, into.length - at, position + at);
    if (bytesRead === 0) {
      into.fill(0, at);
      return;
    }
    at += bytesRead;
  }
}

export async function writeFully(file: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    at += (await file.write(bytes, at, bytes.length - at, position + at)).bytesWritten;
  }
}

/** Writes whole checked blocks to a disk of `sizeBytes`; what is past its end is not stored. */
export function writeBlocks(file: FileHandle, bytes: Uint8Array, first: number, sizeBytes: number): Promise<void> {
  const position = first * CHECKED_BLOCK_BYTES;
  return writeFully(file, bytes.subarray(0, Math.max(0, sizeBytes - position)), position);
}

/** Blocks past the end of the file are zero. */
export async function forStrides(
  file: FileHandle,
  firstBlock: number,
  count: number,
  work: (first: number, bytes: Uint8Array) => Promise<void>,
): Promise<void> {
  const strideBlocks = STRIDE_BYTES / CHECKED_BLOCK_BYTES;
  for (let done = 0; done < count; done += strideBlocks) {
    const bytes = Buffer.allocUnsafe(Math.min(strideBlocks, count - done) * CHECKED_BLOCK_BYTES);
    await readFully(file, bytes, (firstBlock + done) * CHECKED_BLOCK_BYTES);
    await work(firstBlock + done, bytes);
  }
}

export async function syncFolder(path: string): Promise<void> {
  const folder = await open(dirname(path), 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
