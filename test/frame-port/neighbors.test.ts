import { describe, expect, it } from 'vitest';
import { IpAddress } from '../../src/packet/address.js';
import { ETHERNET_BYTES, formatMac, parseMac } from '../../src/packet/ethernet.js';
import { NeighborCache } from '../../src/port/frame/neighbor-cache.js';
import { NeighborProtocol } from '../../src/port/frame/neighbor-protocol.js';
import { SourceCache } from '../../src/port/source-cache.js';

const MAC_A = parseMac('02:00:00:00:00:0a');
const MAC_B = parseMac('02:00:00:00:00:0b');
const MAC_C = parseMac('02:00:00:00:00:0c');
const SECOND = 1e9;
const V4 = ['10.0.0.1', '10.0.0.2', '10.0.0.3'].map((text) => IpAddress.parse(text));
const V6 = ['fd00::1', 'fd00::2', 'fd00::3'].map((text) => IpAddress.parse(text));

function receive(station: NeighborProtocol, frame: Uint8Array, nowNs = 0): boolean {
  const isArp = frame[12] === 0x08;
  return isArp ? station.receiveArp(frame, ETHERNET_BYTES, nowNs) : station.receiveNdp(frame, ETHERNET_BYTES, nowNs);
}

/** Two stations and the frames that lie on the wire between them. */
function pair(addresses: readonly IpAddress[]) {
  const toA: Uint8Array[] = [];
  const toB: Uint8Array[] = [];
  return {
    toA,
    toB,
    a: new NeighborProtocol(addresses[0], MAC_A, (frame) => toB.push(frame)),
    b: new NeighborProtocol(addresses[1], MAC_B, (frame) => toA.push(frame)),
  };
}

describe.each([
  ['ARP', V4],
  ['neighbour discovery', V6],
])('%s', (_name, addresses) => {
  it('asks, is answered, and the one asked knows the asker', () => {
    const { a, b, toA, toB } = pair(addresses);
    expect(a.lookup(addresses[1], 0)).toBeUndefined();
    expect(toB.length).toBe(1);
    expect(receive(b, toB[0])).toBe(true);
    expect(b.lookup(addresses[0], 0)).toEqual(MAC_A);
    expect(toA.length).toBe(1);
    expect(formatMac(toA[0].subarray(0, 6))).toBe(formatMac(MAC_A));
    expect(receive(a, toA[0])).toBe(true);
    expect(a.lookup(addresses[1], 0)).toEqual(MAC_B);
    expect([toA.length, toB.length]).toEqual([1, 1]);
  });

  it('does not answer for others, nor learn from what does not concern it', () => {
    const { a, b, toA, toB } = pair(addresses);
    a.lookup(addresses[2], 0);
    expect(receive(b, toB[0])).toBe(true);
    expect(toA.length).toBe(0);
    expect(b.lookup(addresses[0], 0)).toBeUndefined();
  });

  it('does not believe answers nobody asked for', () => {
    const { a, b, toA, toB } = pair(addresses);
    a.lookup(addresses[1], 0);
    receive(b, toB[0]);
    const stranger = new NeighborProtocol(addresses[0], MAC_A, () => {});
    expect(receive(stranger, toA[0])).toBe(true);
    expect(stranger.lookup(addresses[1], 0)).toBeUndefined();
  });

  it('announces a move to whoever knew the address elsewhere', () => {
    const { a, b, toA, toB } = pair(addresses);
    b.lookup(addresses[0], 0);
    receive(a, toA[0]);
    receive(b, toB[0]);
    expect(b.lookup(addresses[0], 0)).toEqual(MAC_A);
    const heard: Uint8Array[] = [];
    const successor = new NeighborProtocol(addresses[0], MAC_C, (frame) => heard.push(frame));
    successor.announce();
    expect(heard.length).toBe(1);
    expect(heard[0][0] & 1).toBe(1); // to a group
    expect(receive(b, heard[0], SECOND)).toBe(true);
    expect(b.lookup(addresses[0], SECOND)).toEqual(MAC_C);
    expect(toA.length).toBe(1); // nothing to answer
  });

  it('takes its own announcement from nobody', () => {
    const { a, toB } = pair(addresses);
    a.announce();
    const twin = new NeighborProtocol(addresses[0], MAC_B, () => {});
    receive(twin, toB[0]);
    expect(twin.lookup(addresses[0], 0)).toBeUndefined();
  });

  it('rejects packets that are cut short, and those of the other family', () => {
    const { a, b, toB } = pair(addresses);
    a.lookup(addresses[1], 0);
    const whole = toB[0];
    for (let length = ETHERNET_BYTES; length < whole.length; length++) {
      expect(receive(b, whole.slice(0, length))).toBe(false);
    }
    const other = new NeighborProtocol(addresses === V4 ? V6[0] : V4[0], MAC_A, () => {});
    expect(receive(other, whole)).toBe(false);
  });
});

describe('neighbour cache', () => {
  const [address] = V4;

  it('asks at most ten times a second', () => {
    const cache = new NeighborCache();
    const asked = Array.from({ length: 100 }, (_, i) => cache.shouldAsk(address, i * 10e6)).filter(Boolean);
    expect(asked.length).toBe(10);
  });

  it('uses an entry, then asks again while using it, then forgets it', () => {
    const cache = new NeighborCache();
    cache.shouldAsk(address, 0);
    cache.answer(address, MAC_A, 0);
    expect(cache.shouldAsk(address, 30 * SECOND)).toBe(false);
    expect(cache.shouldAsk(address, 31 * SECOND)).toBe(true);
    expect(cache.lookup(address, 31 * SECOND)).toEqual(MAC_A);
    expect(cache.lookup(address, 121 * SECOND)).toBeUndefined();
    cache.answer(address, MAC_B, 121 * SECOND);
    expect(cache.lookup(address, 122 * SECOND)).toEqual(MAC_B);
  });

  it('keeps static entries for ever, against answers and against crowds', () => {
    const cache = new NeighborCache();
    cache.add(address, MAC_A, Infinity);
    cache.answer(address, MAC_B, SECOND);
    for (let i = 0; i < 3000; i++) cache.add(IpAddress.parse(`10.1.${i >> 8}.${i & 0xff}`), MAC_B, SECOND);
    expect(cache.lookup(address, 1e6 * SECOND)).toEqual(MAC_A);
    expect(cache.shouldAsk(address, 1e6 * SECOND)).toBe(false);
    expect(cache.size).toBe(1024);
  });
});

describe('source cache', () => {
  it('gives one object for one address, wherever it stands', () => {
    const cache = new SourceCache();
    const bytes = Uint8Array.of(0, 10, 0, 0, 1, 10, 0, 0, 2, 10, 0, 0, 1);
    const first = cache.get(bytes, 1, 4);
    expect(first.text).toBe('10.0.0.1');
    expect(cache.get(bytes, 5, 4).text).toBe('10.0.0.2');
    expect(cache.get(bytes, 9, 4)).toBe(first);
  });

  it('is right when addresses share a key', () => {
    const cache = new SourceCache();
    // The key is a sum of 32-bit words times powers of 31, so that (x, y) and (x + 1, y - 31) meet: here 1, 40 and 2, 9.
    const one = IpAddress.parse('fd00::1:0:28').bytes;
    const two = IpAddress.parse('fd00::2:0:9').bytes;
    for (const bytes of [one, two, one, two]) {
      expect(cache.get(bytes, 0, 16).text).toBe(IpAddress.fromBytes(bytes).text);
    }
  });
});
