/**
 * CRC-32C (Castagnoli, as in iSCSI, RFC 3720 appendix B.4): what guards data at rest and application data under way, so that it is
 * another sum than the ICRC of the packets. Values chain as in {@link crc32}.
 */

import { crcOfRange, crcTables } from './crc-tables.js';
import { requirePackage } from './packages.js';

type Crc32c = (bytes: Uint8Array, seed?: number) => number;

/** The reflected polynomial. */
const CRC32C_POLYNOMIAL = 0x82f63b78;

/** CRC-32C in JavaScript, about a tenth as fast as {@link crc32c} where that is native. */
export function portableCrc32c(bytes: Uint8Array, seed = 0): number {
  tables ??= crcTables(CRC32C_POLYNOMIAL);
  return crcOfRange(tables, bytes, 0, bytes.length, seed);
}

let tables: Int32Array | undefined;

/** Up to here a call of native code costs more than the sum does: headers of messages are that short. */
const SHORT_BYTES = 64;

/** CRC-32C of `bytes`, continuing from `seed` (an earlier result; 0 to start). Unsigned. The first call for more than a header loads the fastest one there is. */
export function crc32c(bytes: Uint8Array, seed?: number): number {
  if (bytes.length <= SHORT_BYTES) return portableCrc32c(bytes, seed);
  native ??= fastest();
  return native(bytes, seed);
}

let native: Crc32c | undefined;

function fastest(): Crc32c {
  try {
    return requirePackage<{ crc32c: Crc32c }>('@node-rs/crc32').crc32c;
  } catch {
    return portableCrc32c; // Not installed, or no prebuilt binary for this platform.
  }
}
