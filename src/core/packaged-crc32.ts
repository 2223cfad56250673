import { type Crc32Implementation, nodeRsCrc32, zlibCrc32 } from './node-crc32.js';

export function packagedCrc32(): Crc32Implementation | undefined {
  try {
    return nodeRsCrc32();
  } catch {
    return zlibCrc32(); // Not installed, or no prebuilt binary for this platform.
  }
}
