/**
 * The upper halves of the vector registers. A library that leaves something in them (ISA-L ends its functions without VZEROUPPER) makes a thread slow for as long as
 * it lives: processors of Intel from Ice Lake on then change the state of the registers each time that old and new vector instructions alternate, and the code of V8
 * and the native code around it do so several times a call (Intel 64 and IA-32 Architectures Optimization Reference Manual, "Mixing Intel AVX and Intel SSE").
 */

import { createHash } from 'node:crypto';

/** So much that OpenSSL takes its vector code. */
const BYTES = new Uint8Array(1024);

/** Leaves the vector registers of this thread clean: OpenSSL ends its SHA-512 with the instruction that does it. Some microseconds. */
export function cleanVectorState(): void {
  createHash('sha512').update(BYTES).digest();
}
