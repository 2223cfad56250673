/** Whatever the bytes: no throw, no read outside the range. Mutations of good packets reach deeper than noise does. */

import { readdirSync } from 'node:fs';
import { expect, test } from 'vitest';
import { type RandomSource, randomInt, SeededRandom } from '../../src/core/random.js';
import { ARP_REPLY, ArpPacket, parseArp, writeArp } from '../../src/packet/arp.js';
import { FRAME_OK, FRAME_REASONS, FrameInfo, parseFrame } from '../../src/packet/frame.js';
import { NDP_BYTES, NdpPacket, parseNdp, writeNeighborSolicitation } from '../../src/packet/ndp.js';
import { PARSE_OK, PARSE_REASONS, parseRoce, RocePacket } from '../../src/packet/roce.js';
import { describeRoce } from '../../src/packet/view.js';
import { readPackets } from '../support/pcapng.js';
import { repetitions } from '../support/repetitions.js';

const ROUNDS = repetitions(20_000, 200_000);
const MARGIN = 64;
const folder = new URL('../golden/', import.meta.url);
const frames = readdirSync(folder)
  .filter((name) => name.endsWith('.pcapng'))
  .flatMap((name) => readPackets(new URL(name, folder)))
  .filter((frame) => frame.length < 400);

/** Noise, or a good packet with bytes changed, cut off or appended. */
function mutate(random: RandomSource, seed: Uint8Array | undefined): Uint8Array {
  const length = seed === undefined ? randomInt(random, 0, 90) : Math.max(0, seed.length + randomInt(random, -60, 8));
  const bytes = new Uint8Array(length);
  if (seed === undefined) for (let i = 0; i < length; i++) bytes[i] = random.u32();
  else {
    bytes.set(seed.subarray(0, length));
    for (let changes = randomInt(random, 0, 4); changes > 0 && length > 0; changes--) {
      // Most of what a parser decides on stands in front.
      bytes[randomInt(random, 0, Math.min(length, 64) - 1)] = random.u32();
    }
  }
  return bytes;
}

/** `bytes` between margins of two kinds of poison: a read outside the range makes the two runs differ. */
function poisoned(bytes: Uint8Array): [Uint8Array, Uint8Array] {
  const around = (poison: number) => {
    const guarded = new Uint8Array(bytes.length + 2 * MARGIN).fill(poison);
    guarded.set(bytes, MARGIN);
    return guarded;
  };
  return [around(0x00), around(0xff)];
}

/** Comparing values one by one is much faster than a deep equality of the test library. */
function sameFields(a: object, b: object): boolean {
  const left = Object.values(a);
  const right = Object.values(b);
  return left.every((value, i) => (value instanceof Uint8Array ? `${value}` === `${right[i]}` : value === right[i]));
}

test(`${ROUNDS} random and mutated datagrams through parseRoce and describeRoce`, () => {
  const random = new SeededRandom(5).stream('roce');
  const [first, second] = [new RocePacket(), new RocePacket()];
  const seen = new Set<number>();
  let outside = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const frame = frames[randomInt(random, 0, frames.length - 1)];
    const headerBytes = frame[12] === 0x08 ? 42 : 62;
    const bytes = mutate(random, round % 4 === 0 ? undefined : frame.subarray(headerBytes));
    const [zeros, ones] = poisoned(bytes);
    const status = parseRoce(zeros, MARGIN, bytes.length, first);
    seen.add(status);
    if (parseRoce(ones, MARGIN, bytes.length, second) !== status) outside++;
    else if (status === PARSE_OK) {
      const end = first.payloadOffset + first.payloadBytes + first.padBytes + 4;
      if (!sameFields(first, second) || end !== MARGIN + bytes.length) outside++;
    }
    if (describeRoce(zeros, MARGIN, bytes.length).text !== describeRoce(ones, MARGIN, bytes.length).text) outside++;
  }
  expect(outside).toBe(0);
  expect([...seen].map((status) => PARSE_REASONS[status])).toEqual(
    expect.arrayContaining(PARSE_REASONS.filter((reason) => reason !== 'bad_sack')),
  );
});

test(`${ROUNDS} random and mutated frames through parseFrame`, () => {
  const random = new SeededRandom(6).stream('frames');
  const [first, second] = [new FrameInfo(), new FrameInfo()];
  const seen = new Set<number>();
  let outside = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const bytes = mutate(random, round % 4 === 0 ? undefined : frames[randomInt(random, 0, frames.length - 1)]);
    const [zeros, ones] = poisoned(bytes);
    const status = parseFrame(zeros, MARGIN, bytes.length, first);
    seen.add(status);
    if (parseFrame(ones, MARGIN, bytes.length, second) !== status) outside++;
    else if (status === FRAME_OK) {
      const end = first.payloadOffset + first.payloadBytes;
      if (!sameFields(first, second) || first.payloadBytes < 0 || end > MARGIN + bytes.length) outside++;
    }
  }
  expect(outside).toBe(0);
  // A fragment or an option with a right checksum does not come about by chance; frame.test.ts makes them.
  for (const reason of [
    'ok',
    'frame_too_short',
    'not_ip',
    'bad_ip_version',
    'bad_ip_length',
    'bad_ip_checksum',
    'bad_udp_length',
  ]) {
    expect(seen).toContain(FRAME_REASONS.indexOf(reason));
  }
});

test('mutated ARP and neighbour discovery', () => {
  const random = new SeededRandom(7).stream('neighbours');
  const arp = new Uint8Array(28);
  const mac = Uint8Array.of(2, 0, 0, 0, 0, 1);
  writeArp(arp, 0, ARP_REPLY, mac, Uint8Array.of(192, 0, 2, 1), mac, Uint8Array.of(192, 0, 2, 2));
  const ndp = new Uint8Array(NDP_BYTES);
  writeNeighborSolicitation(ndp, 0, new Uint8Array(16).fill(1), mac, new Uint8Array(16).fill(2));
  let outside = 0;
  for (let round = 0; round < 20_000; round++) {
    const [zeros, ones] = poisoned(mutate(random, round % 2 === 0 ? arp : ndp));
    const length = zeros.length - 2 * MARGIN;
    const [a, b] = [new ArpPacket(), new ArpPacket()];
    if (parseArp(zeros, MARGIN, length, a) !== parseArp(ones, MARGIN, length, b) || !sameFields(a, b)) outside++;
    const [c, d] = [new NdpPacket(), new NdpPacket()];
    if (parseNdp(zeros, MARGIN, length, c) !== parseNdp(ones, MARGIN, length, d) || !sameFields(c, d)) outside++;
  }
  expect(outside).toBe(0);
});
