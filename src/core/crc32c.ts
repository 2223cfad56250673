/**
 * CRC-32C (Castagnoli, as in iSCSI, RFC 3720 appendix B.4): protects stored data and application data in flight, with
 * another checksum than the ICRC of the packets. Values chain as in {@link crc32}.
 */

import { crcOfRange, crcTables } from './crc-tables.js';
import { requirePackage } from './packages.js';

export interface Crc32cImplementation {
  readonly name: string;
  readonly sum: (bytes: Uint8Array, seed?: number) => number;
}

const CRC32C_POLYNOMIAL = 0x82f63b78;

export function portableCrc32c(bytes: Uint8Array, seed = 0): number {
  tables ??= crcTables(CRC32C_POLYNOMIAL);
  return crcOfRange(tables, bytes, 0, bytes.length, seed);
}

let tables: Int32Array | undefined;

/**
 * Up to here a call of native code costs more than the computation in JavaScript: headers of messages are that short.
 */
const SHORT_BYTES = 64;

/**
 * The first call for more than a header finds the implementation of this thread: the package, or that of
 * {@link useCrc32c}.
 */
export function crc32c(bytes: Uint8Array, seed?: number): number {
  if (bytes.length <= SHORT_BYTES) return portableCrc32c(bytes, seed);
  native ??= find();
  return native.sum(bytes, seed);
}

let native: Crc32cImplementation | undefined;
let find = packagedCrc32c;

export function useCrc32c(findIt: () => Crc32cImplementation): void {
  native = undefined;
  find = findIt;
}

export function crc32cBackend(): string {
  native ??= find();
  return native.name;
}

function packagedCrc32c(): Crc32cImplementation {
  try {
    return nodeRsCrc32c();
  } catch {
    return javaScriptCrc32c(); // Not installed, or no prebuilt binary for this platform.
  }
}

export function nodeRsCrc32c(): Crc32cImplementation {
  const { crc32c: sum } = requirePackage<{ crc32c: Crc32cImplementation['sum'] }>('@node-rs/crc32');
  return { name: '@node-rs/crc32', sum };
}

export function javaScriptCrc32c(): Crc32cImplementation {
  return { name: 'javascript', sum: portableCrc32c };
}
