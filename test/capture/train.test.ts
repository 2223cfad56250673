/** Packets that segmentation offload has merged in a capture. */

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { readU16, writeU16 } from '../../src/core/bytes.js';
import { icrcOfIpPacket } from '../../src/packet/icrc.js';
import { CaptureReader } from '../../src/port/capture/capture-reader.js';
import type { CapturedPacket } from '../../src/port/capture/captured-packet.js';
import { decodeRoce } from '../../src/port/capture/decoded-packet.js';
import { separated } from '../../src/port/capture/train.js';
import { udpOf } from '../../src/port/capture/udp-in-capture.js';

const PORTS = new Set([4791]);
const ETHERNET = 14;

function golden(name: string): CapturedPacket[] {
  return [...new CaptureReader(readFileSync(`test/golden/${name}.pcapng`))];
}

const udpAt = ({ bytes }: CapturedPacket) => ETHERNET + (bytes[ETHERNET] >> 4 === 4 ? 20 : 40);
const payloadOf = (packet: CapturedPacket) => udpOf(packet)!.payload;

/** Gives a packet another IPv4 identification, and the ICRC that belongs to it. */
function renumbered(packet: CapturedPacket, id: number): CapturedPacket {
  const bytes = Uint8Array.from(packet.bytes);
  if (bytes[ETHERNET] >> 4 === 4) writeU16(bytes, ETHERNET + 4, id);
  const end = udpAt(packet) + readU16(bytes, udpAt(packet) + 4);
  const { computed } = icrcOfIpPacket(bytes.subarray(ETHERNET, end));
  new DataView(bytes.buffer).setUint32(end - 4, computed, true);
  return { ...packet, bytes };
}

/** What a host with offload captures of these packets: headers of the first, payloads of all. */
function merged(packets: readonly CapturedPacket[], keep = Number.POSITIVE_INFINITY): CapturedPacket {
  const [first] = packets;
  const udp = udpAt(first);
  const payload = Buffer.concat(packets.map(payloadOf));
  const bytes = new Uint8Array(udp + 8 + payload.length);
  bytes.set(first.bytes.subarray(0, udp + 8));
  bytes.set(payload, udp + 8);
  writeU16(bytes, udp + 4, 8 + payload.length);
  if (bytes[ETHERNET] >> 4 === 4) writeU16(bytes, ETHERNET + 2, udp - ETHERNET + 8 + payload.length);
  else writeU16(bytes, ETHERNET + 4, 8 + payload.length);
  return { ...first, bytes: bytes.subarray(0, keep), originalLength: bytes.length };
}

/** The packets of one message of several, of one length but the last. */
function message(name: string, ids: 'consecutive' | 'equal'): CapturedPacket[] {
  const sends = golden(name).filter((packet) => payloadOf(packet)[0] <= 0x02);
  const begin = sends.findIndex((packet) => payloadOf(packet)[0] === 0x01);
  const end = sends.findIndex((packet, i) => i > begin && payloadOf(packet)[0] === 0x02);
  const run = sends.slice(begin, end + 1); // MIDDLE, MIDDLE ... LAST
  expect(run.length).toBeGreaterThan(1);
  return run.map((packet, i) => renumbered(packet, ids === 'equal' ? 9 : 0xfffe + i));
}

const decoded = (packet: CapturedPacket) => decodeRoce(udpOf(packet)!, { number: 1, timeNs: 0, interfaceId: 0 }, true);

describe('a train', () => {
  it.each([
    ['send-rc-mtu1024-v4', 'consecutive'],
    ['send-rc-mtu1024-v4', 'equal'],
    ['send-rc-mtu256-v4', 'consecutive'],
    ['send-rc-mtu1024-v6', 'consecutive'],
  ] as const)('of %s with %s identifications is separated into its packets', (name, ids) => {
    const packets = message(name, ids);
    const parts = separated(merged(packets), PORTS);
    expect(parts.map(({ train }) => train)).toEqual(packets.map((_, index) => ({ index, count: packets.length })));
    parts.forEach((part, i) => {
      const { train: _, ...seen } = decoded(part);
      expect(seen).toEqual(decoded(packets[i]));
      expect(seen.icrc).toBe('ok');
    });
  });

  it('with one damaged packet has one wrong ICRC', () => {
    const packets = message('send-rc-mtu256-v4', 'consecutive');
    const train = merged(packets);
    train.bytes[udpAt(packets[0]) + 8 + payloadOf(packets[0]).length + 40] ^= 1;
    expect(separated(train, PORTS).map((part) => decoded(part).icrc)).toEqual(
      packets.map((_, i) => (i === 1 ? 'bad' : 'ok')),
    );
  });

  it('without any correct ICRC, as after a change of addresses, is separated by its headers', () => {
    const packets = message('send-rc-mtu256-v4', 'consecutive');
    const train = merged(packets);
    train.bytes[ETHERNET + 13]++;
    const parts = separated(train, PORTS).map(decoded);
    expect(parts.map(({ icrc }) => icrc)).toEqual(packets.map(() => 'bad'));
    expect(parts.map(({ bth }) => bth!.psn)).toEqual(packets.map((packet) => decoded(packet).bth!.psn));
  });

  it('that the capture has cut shows its first packets; cut within the first, it shows that there are several', () => {
    const packets = message('send-rc-mtu256-v4', 'consecutive');
    const length = payloadOf(packets[0]).length;
    const start = udpAt(packets[0]) + 8;
    const cut = separated(merged(packets, start + length + 60), PORTS);
    expect(cut.map((part) => decoded(part).icrc)).toEqual(['ok', 'cut']);
    expect(cut[1].originalLength).toBe(start + payloadOf(packets[1]).length);
    const [within] = separated(merged(packets, start + 60), PORTS);
    expect(within.train).toEqual({ index: 0, count: 0 });
    expect(decoded(within)).toMatchObject({ malformed: 'merged_packets', icrc: 'cut' });
  });

  it('whose header has no length, or that of one packet, is separated as well', () => {
    const packets = message('send-rc-mtu256-v4', 'consecutive');
    const noLength = merged(packets);
    writeU16(noLength.bytes, ETHERNET + 2, 0);
    writeU16(noLength.bytes, udpAt(noLength) + 4, 0);
    const ofOne = merged(packets);
    writeU16(ofOne.bytes, udpAt(ofOne) + 4, 8 + payloadOf(packets[0]).length);
    for (const train of [noLength, ofOne]) {
      expect(separated(train, PORTS).map((part) => decoded(part).icrc)).toEqual(packets.map(() => 'ok'));
    }
  });

  it('has checksums of the pseudo-header, or none', () => {
    const packets = message('send-rc-mtu256-v4', 'consecutive');
    const train = merged(packets);
    writeU16(train.bytes, udpAt(train) + 6, 0x1234);
    const [part] = separated(train, PORTS);
    expect(readU16(part.bytes, udpAt(part) + 6)).not.toBe(0);
    writeU16(train.bytes, udpAt(train) + 6, 0);
    expect(readU16(separated(train, PORTS)[0].bytes, udpAt(part) + 6)).toBe(0);
  });
});

describe('no train', () => {
  it.each(['send-rc-mtu1024-v4', 'read-rc-mtu1024-v6', 'atomic-rc-v4', 'cm-rping-v4'])('is in %s', (name) => {
    for (const packet of golden(name)) expect(separated(packet, PORTS)).toEqual([packet]);
  });

  it('is a single packet with a wrong ICRC, or one to another port', () => {
    const [, packet] = message('send-rc-mtu1024-v4', 'consecutive');
    const damaged = { ...packet, bytes: Uint8Array.from(packet.bytes) };
    damaged.bytes[damaged.bytes.length - 1] ^= 1;
    expect(separated(damaged, PORTS)).toEqual([damaged]);
    const train = merged(message('send-rc-mtu256-v4', 'consecutive'));
    expect(separated(train, new Set([4792]))).toEqual([train]);
  });
});
