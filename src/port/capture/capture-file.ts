/** Captures in files. */

import { open } from 'node:fs/promises';
import { type CaptureSource, unreadable } from './capture-source.js';

export async function openFileSource(path: string): Promise<CaptureSource> {
  try {
    const handle = await open(path, 'r');
    return {
      name: path,
      sizeBytes: (await handle.stat()).size,
      read: async (buffer, offset, length) => (await handle.read(buffer, offset, length, null)).bytesRead,
      close: () => handle.close(),
    };
  } catch (cause) {
    throw unreadable(path, cause);
  }
}
