/**
 * ISA-L takes a quarter of the time of the npm package, so that a disk request of 1 MiB, whose 256 blocks are
 * checksummed at both ends, takes 0.3 ms less.
 */

import {
  type Crc32cImplementation,
  javaScriptCrc32c,
  nodeRsCrc32c,
  portableCrc32c,
  useCrc32c,
} from '../../core/crc32c.js';
import { RoceError } from '../../core/errors.js';
import { NS_PER_MS } from '../../core/units.js';
import { koffiPackage, libC } from '../../dgram-ext/libc.js';
import { ImplementationSelection, leastNs, type SelectionRules } from '../implementation-selection.js';

export const CRC32C_VARIABLE = 'ROCEV2_CRC32C';

const LIBRARY = 'libisal.so.2';

/** `crc32_iscsi` of ISA-L (Debian's libisal2). */
export function isaLCrc32c(): Crc32cImplementation {
  const lib = libC();
  if (typeof lib === 'string') throw new RoceError('ERR_ROCE_UNSUPPORTED', `${LIBRARY} cannot be called: ${lib}`);
  const sum: (bytes: Uint8Array, length: number, register: number) => number = koffiPackage()
    .load(LIBRARY)
    .func('int crc32_iscsi(const void *, int, int)');
  // It begins with, and returns, the register itself, which is the inverted CRC.
  return { name: 'isa-l', sum: (bytes, seed = 0) => ~sum(bytes, bytes.length, ~seed) >>> 0 };
}

const BLOCK_BYTES = 4096;
const TRIED_BLOCKS = 16;
/** Time for each candidate. */
const TRIED_NS = NS_PER_MS;

/** Around the widths in which vector code takes its bytes. */
const LENGTHS = [
  65, 79, 80, 127, 128, 129, 191, 255, 256, 257, 511, 513, 768, 1023, 1025, 2047, 3001, 4095, 4096, 4097,
];
const OFFSETS = [0, 1, 7, 16, 31, 33, 60];
const SEEDS = [0, 0xffffffff, 0x80000000, 0x2144df1c];

export function crc32cRight({ sum }: Crc32cImplementation): boolean {
  const bytes = new Uint8Array(8192);
  for (let i = 0, state = 1; i < bytes.length; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    bytes[i] = state >>> 24;
  }
  return LENGTHS.every((length, i) => {
    const offset = OFFSETS[i % OFFSETS.length];
    const seed = SEEDS[i % SEEDS.length];
    const view = bytes.subarray(offset, offset + length);
    const right = portableCrc32c(view, seed);
    const half = length >> 1;
    return sum(view, seed) === right && sum(view.subarray(half), sum(view.subarray(0, half), seed)) === right;
  });
}

function blockNs({ sum }: Crc32cImplementation): number {
  const bytes = new Uint8Array(BLOCK_BYTES * TRIED_BLOCKS);
  const sumAll = () => {
    for (let at = 0; at < bytes.length; at += BLOCK_BYTES) sum(bytes.subarray(at, at + BLOCK_BYTES));
  };
  return leastNs(sumAll, TRIED_NS) / TRIED_BLOCKS;
}

/** How one is selected. */
export const CRC32C_RULES: SelectionRules<Crc32cImplementation> = {
  what: 'CRC-32C',
  variable: CRC32C_VARIABLE,
  candidates: {
    'isa-l': isaLCrc32c,
    '@node-rs/crc32': nodeRsCrc32c,
    javascript: javaScriptCrc32c,
  },
  isCorrect: crc32cRight,
  failure: 'computes wrong checksums',
  costOf: blockNs,
};

const SELECTION = new ImplementationSelection(CRC32C_RULES);
let isOffered = false;

/**
 * Makes this thread use the fastest CRC-32C, which is selected at the first checksum of more than a header, because
 * many programs need none. A name in `wanted`, by default of the variable, is selected at once. Throws as {@link
 * ImplementationSelection.select}.
 */
export function offerCrc32c(wanted = process.env[CRC32C_VARIABLE] ?? ''): void {
  if (isOffered) return;
  if (wanted !== '') SELECTION.select(wanted);
  useCrc32c(() => SELECTION.select(wanted));
  isOffered = true;
}
