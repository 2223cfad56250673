/** WRITEs that are read back: every pair of lengths, offsets, start PSNs and disturbances at least once. */

import { RC_WRITE_FIRST, RC_WRITE_LAST, RC_WRITE_MIDDLE, RC_WRITE_ONLY } from 'rocev2/internal/packet';
import { type Combination, pairwise } from '../pairwise.js';
import { ack, data, gap, type Step, send, type TestCase } from '../step.js';
import { read } from './request-packets.js';

/** PSN 1 of the connection is 0. */
const BEFORE_WRAP = 0xff_ffff;

const PARAMETERS = {
  length: [
    { name: '1', packets: 0, more: 1 },
    { name: 'mtu-1', packets: 1, more: -1 },
    { name: 'mtu', packets: 1, more: 0 },
    { name: 'mtu+1', packets: 1, more: 1 },
    { name: '3mtu+5', packets: 3, more: 5 },
  ],
  /** Offset in the memory: aligned, odd, and across a page. */
  place: [0, 1, 4090],
  start: ['anywhere', 'before-wrap'],
  disturbance: ['none', 'twice', 'last-lost'],
} as const;

type Shape = Combination<typeof PARAMETERS>;

const ABOUT: Readonly<Record<Shape['disturbance'], string>> = {
  none: '.',
  twice: '; each of its packets comes twice.',
  'last-lost': '; its last packet is lost once.',
};

export const COMBINED_CASES: readonly TestCase[] = pairwise(PARAMETERS).map(combined);

function combined(shape: Shape): TestCase {
  const { length, place, start, disturbance } = shape;
  const wraps = start === 'before-wrap';
  return {
    name: `combined/${length.name}-at-${place}-${start}-${disturbance}`,
    rules: [29, ...(wraps ? [34] : []), ...(disturbance === 'twice' ? [108] : [])],
    about: `A WRITE of length ${length.name} to byte ${place} is read back${ABOUT[disturbance]}${wraps ? ' PSNs pass 2^24.' : ''}`,
    needs: ['memory'],
    ...(wraps && { connect: () => ({ startPsn: BEFORE_WRAP }) }),
    steps: ({ mtu }) => transfer(shape, mtu),
  };
}

/** The READ skips acknowledgements of duplicates. */
function transfer({ length, place, disturbance }: Shape, mtu: number): Step[] {
  const bytes = length.packets * mtu + length.more;
  const packets = Math.ceil(bytes / mtu);
  const last = packets - 1;
  const write = (index: number, at: number) => {
    const from = index * mtu;
    const details = { bytes: Math.min(mtu, bytes - from), from, length: bytes, place, ackReq: index === last };
    return send(opcodeOf(index, packets), at, details);
  };
  const all = Array.from({ length: packets }, (_, index) => write(index, index));
  const arriving = {
    none: all,
    twice: all.flatMap((step) => [step, step]),
    // The READ that arrives instead of the last packet shows the gap.
    'last-lost': [...all.slice(0, -1), read(packets, 1, { place }), gap(last), write(last, last)],
  }[disturbance];
  return [...arriving, ack(last, 1), read(packets, bytes, { place }), data(packets, bytes)];
}

function opcodeOf(index: number, packets: number): number {
  if (packets === 1) return RC_WRITE_ONLY;
  if (index === 0) return RC_WRITE_FIRST;
  return index === packets - 1 ? RC_WRITE_LAST : RC_WRITE_MIDDLE;
}
