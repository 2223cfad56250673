/** Which CRC-32 a thread uses for its ICRCs: the fastest of those that are there and right, or the one that a variable names. */

import { type Crc32Implementation, javaScriptCrc32, nodeRsCrc32, useCrc32, zlibCrc32 } from '../../core/crc32.js';
import { NS_PER_MS } from '../../core/units.js';
import { type Candidate, type Contest, fastestOf, leastNs, namedOne } from '../fastest.js';
import { nativeCrc32 } from './native-sum.js';
import { sumsRight } from './self-test.js';

/** Names one implementation, which is then used or the device is not opened. */
export const CRC32_VARIABLE = 'ROCEV2_CRC32';

/** Makes an implementation, or throws why it cannot be had. */
export type Crc32Candidate = Candidate<Crc32Implementation>;

/** All by name, in the order in which they usually win. */
export const CRC32_CANDIDATES: Readonly<Record<string, Crc32Candidate>> = {
  libdeflate: () => nativeCrc32({ name: 'libdeflate', library: 'libdeflate.so.0', symbol: 'libdeflate_crc32' }),
  'isa-l': () => nativeCrc32({ name: 'isa-l', library: 'libisal.so.2', symbol: 'crc32_gzip_refl' }),
  '@node-rs/crc32': nodeRsCrc32,
  zlib: zlibCrc32,
  javascript: javaScriptCrc32,
};

const CONTEST: Contest<Crc32Implementation> = {
  what: 'CRC-32',
  variable: CRC32_VARIABLE,
  isRight: sumsRight,
  wrong: 'gives wrong sums',
};

/** A 4 KiB packet from BTH to ICRC. */
const TRIED_BYTES = 4108;
const TRIED_PACKETS = 15;
/** Time for each candidate. */
const TRIED_NS = NS_PER_MS;

/** The one of `candidates` that costs least, of those that can be had and are right, else the last resort. Throws ERR_ROCE_UNSUPPORTED when there is none. */
export function fastestCrc32(
  candidates: Iterable<Crc32Candidate>,
  costOf: (implementation: Crc32Implementation) => number = packetNs,
  lastResort?: Crc32Candidate,
): Crc32Implementation {
  return fastestOf(CONTEST, candidates, costOf, { lastResort });
}

/**
 * The one of `candidates` with this name. Throws ERR_ROCE_UNKNOWN_NAME for a name that none has, and ERR_ROCE_UNSUPPORTED where it cannot be had or gives
 * wrong sums.
 */
export function namedCrc32(name: string, candidates: Readonly<Record<string, Crc32Candidate>>): Crc32Implementation {
  return namedOne(CONTEST, name, candidates);
}

/** Nanoseconds for one packet of 4 KiB. */
export function packetNs({ sumAt }: Crc32Implementation): number {
  const slab = new Uint8Array(new ArrayBuffer(TRIED_BYTES * TRIED_PACKETS));
  const sumAll = () => {
    for (let i = 0; i < TRIED_PACKETS; i++) sumAt(slab, i * TRIED_BYTES, TRIED_BYTES, i);
  };
  return leastNs(sumAll, TRIED_NS) / TRIED_PACKETS;
}

/** Tables in JavaScript take three times as long as the next one, and run in full in every thread that tries them. */
const { javascript, ...COMPILED } = CRC32_CANDIDATES;

let chosenFor: string | undefined;
let chosen: Crc32Implementation | undefined;

/** Makes this thread use the implementation that `wanted` names, by default the fastest, and returns its name. Chosen once a thread and name. */
export function chooseCrc32(wanted: string | undefined = process.env[CRC32_VARIABLE]): string {
  if (chosen === undefined || chosenFor !== wanted) {
    chosen =
      wanted === undefined || wanted === ''
        ? fastestCrc32(Object.values(COMPILED), packetNs, javascript)
        : namedCrc32(wanted, CRC32_CANDIDATES);
    chosenFor = wanted;
    useCrc32(chosen);
  }
  return chosen.name;
}
