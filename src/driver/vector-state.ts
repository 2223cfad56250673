/**
 * Clears the upper halves of the vector registers. A library that leaves them dirty (ISA-L ends without VZEROUPPER)
 * slows a thread permanently on Intel processors from Ice Lake on, at each transition between old and new vector
 * instructions (Intel 64 and IA-32 Architectures Optimization Reference Manual, "Mixing Intel AVX and Intel SSE").
 */

import { createHash } from 'node:crypto';

const BYTES = new Uint8Array(1024);

/** Leaves the vector registers of this thread clean: OpenSSL ends its SHA-512 with the instruction that does it. */
export function cleanVectorState(): void {
  createHash('sha512').update(BYTES).digest();
}
