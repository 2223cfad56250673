/**
 * CRC-32C (Castagnoli, as in iSCSI, RFC 3720 appendix B.4): what guards data at rest and application data under way, so that it is
 * another sum than the ICRC of the packets. Values chain as in {@link crc32}.
 */

import { crcOfRange, crcTables } from './crc-tables.js';
import { requirePackage } from './packages.js';

/** A way to compute CRC-32C. All give the same values. */
export interface Crc32cImplementation {
  /** For people, and for `ROCEV2_CRC32C`. */
  readonly name: string;
  /** As {@link crc32c}. */
  readonly sum: (bytes: Uint8Array, seed?: number) => number;
}

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

/**
 * CRC-32C of `bytes`, continuing from `seed` (an earlier result; 0 to start). Unsigned. The first call for more than a header finds the implementation of this
 * thread: the package, or what {@link useCrc32c} says.
 */
export function crc32c(bytes: Uint8Array, seed?: number): number {
  if (bytes.length <= SHORT_BYTES) return portableCrc32c(bytes, seed);
  native ??= find();
  return native.sum(bytes, seed);
}

let native: Crc32cImplementation | undefined;
let find = packagedCrc32c;

/** From now on this thread sums more than headers by what `findIt` gives, which is called when it is first needed. */
export function useCrc32c(findIt: () => Crc32cImplementation): void {
  native = undefined;
  find = findIt;
}

/** Which implementation {@link crc32c} calls in this thread. */
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

/** `@node-rs/crc32`, an optional dependency. Throws ERR_ROCE_UNSUPPORTED where it cannot be loaded. */
export function nodeRsCrc32c(): Crc32cImplementation {
  const { crc32c: sum } = requirePackage<{ crc32c: Crc32cImplementation['sum'] }>('@node-rs/crc32');
  return { name: '@node-rs/crc32', sum };
}

/** Tables in JavaScript, which need nothing. */
export function javaScriptCrc32c(): Crc32cImplementation {
  return { name: 'javascript', sum: portableCrc32c };
}
