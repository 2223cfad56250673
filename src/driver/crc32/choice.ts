/**
 * Which CRC-32 a thread uses for its ICRCs: the fastest of those that are there and right. What is there differs from system to system, and what is
 * fast from processor to processor, so each is tried: first whether it gives right sums, then for about a millisecond how long it takes.
 */

import { type Crc32Implementation, javaScriptCrc32, nodeRsCrc32, useCrc32, zlibCrc32 } from '../../core/crc32.js';
import { RoceError } from '../../core/errors.js';
import { NS_PER_MS } from '../../core/units.js';
import { nowNs } from '../system-clock.js';
import { nativeCrc32 } from './native-sum.js';
import { sumsRight } from './self-test.js';

/** Names one implementation, which is then used or the device is not opened. */
export const CRC32_VARIABLE = 'ROCEV2_CRC32';

/** Makes an implementation, or throws why it cannot be had. */
export type Crc32Candidate = () => Crc32Implementation;

/** All by name, in the order in which they usually win. */
export const CRC32_CANDIDATES: Readonly<Record<string, Crc32Candidate>> = {
  libdeflate: () => nativeCrc32({ name: 'libdeflate', library: 'libdeflate.so.0', symbol: 'libdeflate_crc32' }),
  'isa-l': () => nativeCrc32({ name: 'isa-l', library: 'libisal.so.2', symbol: 'crc32_gzip_refl' }),
  '@node-rs/crc32': nodeRsCrc32,
  zlib: zlibCrc32,
  javascript: javaScriptCrc32,
};

/** A 4 KiB packet from BTH to ICRC. */
const TRIED_BYTES = 4108;
const TRIED_PACKETS = 15;
/** Time for each candidate. */
const TRIED_NS = NS_PER_MS;
/** One that is tried later has to cost this much of the best before it: what lies nearer is noise, and the choice should not change from run to run. */
const CHEAPER = 0.95;

/** The one of `candidates` that costs least, of those that can be had and are right. Throws ERR_ROCE_UNSUPPORTED when there is none. */
export function fastestCrc32(
  candidates: Iterable<Crc32Candidate>,
  costOf: (implementation: Crc32Implementation) => number = packetNs,
): Crc32Implementation {
  let fastest: Crc32Implementation | undefined;
  let leastCost = Number.POSITIVE_INFINITY;
  for (const candidate of candidates) {
    const implementation = rightOne(candidate);
    if (typeof implementation === 'string') continue;
    const cost = costOf(implementation);
    if (cost > leastCost * CHEAPER) continue;
    leastCost = cost;
    fastest = implementation;
  }
  if (fastest === undefined) throw new RoceError('ERR_ROCE_UNSUPPORTED', 'no CRC-32 here gives right sums');
  return fastest;
}

/**
 * The one of `candidates` with this name. Throws ERR_ROCE_UNKNOWN_NAME for a name that none has, and ERR_ROCE_UNSUPPORTED where it cannot be had or gives
 * wrong sums.
 */
export function namedCrc32(name: string, candidates: Readonly<Record<string, Crc32Candidate>>): Crc32Implementation {
  const names = Object.keys(candidates).join(', ');
  if (!Object.hasOwn(candidates, name)) {
    throw new RoceError('ERR_ROCE_UNKNOWN_NAME', `${CRC32_VARIABLE} is '${name}'`, `it is one of ${names}`);
  }
  const implementation = rightOne(candidates[name]);
  if (typeof implementation !== 'string') return implementation;
  throw new RoceError(
    'ERR_ROCE_UNSUPPORTED',
    `${CRC32_VARIABLE} asks for ${name}: ${implementation}`,
    `install it, name another of ${names}, or leave ${CRC32_VARIABLE} out: then the fastest that works is taken`,
  );
}

/** The implementation, or why it cannot be used. */
function rightOne(candidate: Crc32Candidate): Crc32Implementation | string {
  try {
    const implementation = candidate();
    return sumsRight(implementation) ? implementation : 'it gives wrong sums';
  } catch (error) {
    return (error as Error).message.split('\n')[0];
  }
}

/** Nanoseconds for one packet of 4 KiB: of many short looks the quickest, which other work on the machine disturbed least. */
export function packetNs({ sumAt }: Crc32Implementation): number {
  const slab = new Uint8Array(new ArrayBuffer(TRIED_BYTES * TRIED_PACKETS));
  const endNs = nowNs() + TRIED_NS;
  let leastNs = Number.POSITIVE_INFINITY;
  for (let beforeNs = nowNs(); beforeNs < endNs; ) {
    for (let i = 0; i < TRIED_PACKETS; i++) sumAt(slab, i * TRIED_BYTES, TRIED_BYTES, i);
    const afterNs = nowNs();
    leastNs = Math.min(leastNs, afterNs - beforeNs);
    beforeNs = afterNs;
  }
  return leastNs / TRIED_PACKETS;
}

let chosenFor: string | undefined;
let chosen: Crc32Implementation | undefined;

/** Makes this thread use the implementation that `wanted` names, by default the fastest, and returns its name. Chosen once a thread and name. */
export function chooseCrc32(wanted: string | undefined = process.env[CRC32_VARIABLE]): string {
  if (chosen === undefined || chosenFor !== wanted) {
    chosen =
      wanted === undefined || wanted === ''
        ? fastestCrc32(Object.values(CRC32_CANDIDATES))
        : namedCrc32(wanted, CRC32_CANDIDATES);
    chosenFor = wanted;
    useCrc32(chosen);
  }
  return chosen.name;
}
