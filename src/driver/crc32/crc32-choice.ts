import { javaScriptCrc32, useCrc32 } from '../../core/crc32.js';
import { type Crc32Implementation, nodeRsCrc32, zlibCrc32 } from '../../core/node-crc32.js';
import { NS_PER_MS } from '../../core/units.js';
import { ImplementationSelection, leastNs, type SelectionRules } from '../implementation-selection.js';
import { sumsRight } from './crc32-self-test.js';
import { nativeCrc32 } from './native-sum.js';

export const CRC32_VARIABLE = 'ROCEV2_CRC32';

/** A 4 KiB packet from BTH to ICRC. */
const TRIED_BYTES = 4108;
const TRIED_PACKETS = 15;
/** Time for each candidate. */
const TRIED_NS = NS_PER_MS;

export function packetNs({ sumAt }: Crc32Implementation): number {
  const slab = new Uint8Array(new ArrayBuffer(TRIED_BYTES * TRIED_PACKETS));
  const sumAll = () => {
    for (let i = 0; i < TRIED_PACKETS; i++) sumAt(slab, i * TRIED_BYTES, TRIED_BYTES, i);
  };
  return leastNs(sumAll, TRIED_NS) / TRIED_PACKETS;
}

/** How one is selected. */
export const CRC32_RULES: SelectionRules<Crc32Implementation> = {
  what: 'CRC-32',
  variable: CRC32_VARIABLE,
  candidates: {
    libdeflate: () => nativeCrc32({ name: 'libdeflate', library: 'libdeflate.so.0', symbol: 'libdeflate_crc32' }),
    'isa-l': () => nativeCrc32({ name: 'isa-l', library: 'libisal.so.2', symbol: 'crc32_gzip_refl' }),
    '@node-rs/crc32': nodeRsCrc32,
    zlib: zlibCrc32,
    javascript: javaScriptCrc32,
  },
  // Tables in JavaScript take three times as long as the next one, and run in full in every thread that tries them.
  lastResort: 'javascript',
  isCorrect: sumsRight,
  failure: 'computes wrong checksums',
  costOf: packetNs,
};

const SELECTION = new ImplementationSelection(CRC32_RULES);
let inUse: Crc32Implementation | undefined;

/**
 * Makes this thread use the implementation that `wanted` names, by default the fastest, and returns its name. Throws as
 * {@link ImplementationSelection.select}.
 */
export function chooseCrc32(wanted?: string): string {
  const chosen = SELECTION.select(wanted);
  if (chosen !== inUse) useCrc32(chosen);
  inUse = chosen;
  return chosen.name;
}
