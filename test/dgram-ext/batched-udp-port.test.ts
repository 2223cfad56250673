import { networkInterfaces } from 'node:os';
import { setImmediate as nextRound } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { equalBytes } from '../../src/core/bytes.js';
import { batchedUdpAvailable, openBatchedUdpPort, openUdpPort } from '../../src/dgram-ext/index.js';
import { nowNs } from '../../src/driver/system-clock.js';
import { IpAddress } from '../../src/packet/address.js';
import { ECN_CE, type Port } from '../../src/port/datagram.js';
import { collect, type PortPair, portContract, sendAll, until } from '../contracts/port-contract.js';

const V4_A = IpAddress.parse('127.53.0.1');
const V4_B = IpAddress.parse('127.53.0.2');
const V6 = IpAddress.parse('::1');
const hasIpv6 = Object.values(networkInterfaces()).some((entries) => entries?.some(({ address }) => address === '::1'));
const missing = batchedUdpAvailable();

async function opened(...ports: Port[]): Promise<Port[]> {
  await Promise.all(ports.map((port) => port.open()));
  return ports;
}

async function openPair(aAddress: IpAddress, bAddress: IpAddress): Promise<PortPair> {
  const [a, b] = await opened(
    openBatchedUdpPort({ nowNs, address: aAddress, udpPort: 0 }),
    openBatchedUdpPort({ nowNs, address: bAddress, udpPort: 0 }),
  );
  return { a, b, conflicting: () => openBatchedUdpPort({ nowNs, address: aAddress, udpPort: a.udpPort }) };
}

const traits = { seesTrafficClass: true, seesIpId: false };
if (missing === undefined) {
  portContract('batched udp v4', traits, () => openPair(V4_A, V4_B));
  if (hasIpv6) portContract('batched udp v6', traits, () => openPair(V6, V6));
  else it.skip('batched udp v6: this host has no ::1', () => {});
}

describe.skipIf(missing !== undefined)(`batched udp port (needs koffi on Linux)`, () => {
  async function withPorts(ports: Port[], body: () => Promise<void>): Promise<void> {
    try {
      await opened(...ports);
      await body();
    } finally {
      await Promise.all(ports.map((port) => port.close()));
    }
  }

  /** Lengths that make trains with a short end, trains of one, and a train longer than the kernel takes. */
  const mixed = [
    28,
    28,
    28,
    20,
    4128,
    4112,
    4112,
    16,
    ...Array<number>(100).fill(40),
    ...Array<number>(20).fill(4112),
    1000,
  ];
  const payloads = mixed.map((length, i) => new Uint8Array(length).fill(i));

  it.each([
    ['batched', 'plain'],
    ['plain', 'batched'],
  ])('carries trains from a %s port to a %s one', async (from, to) => {
    const make = (kind: string, address: IpAddress) =>
      kind === 'batched' ? openBatchedUdpPort({ nowNs, address, udpPort: 0 }) : openUdpPort({ address, udpPort: 0 });
    const [a, b] = [make(from, V4_A), make(to, V4_B)];
    await withPorts([a, b], async () => {
      const received = collect(b);
      sendAll(a, b, payloads);
      await until(() => received.length === payloads.length, 'all datagrams');
      received.forEach(({ payload }, i) => {
        expect(equalBytes(payload, payloads[i])).toBe(true);
      });
      expect(a.counters).toEqual({ txDatagrams: payloads.length, rxDatagrams: 0, txErrors: 0 });
    });
  });

  it('looks again for 100 us behind what has come, and behind what it sends first after that, then sleeps', async () => {
    let timeNs = 1e9;
    let looks = 0;
    const clock = () => {
      looks++;
      return timeNs;
    };
    const [a, b] = [
      openBatchedUdpPort({ nowNs, address: V4_A, udpPort: 0 }),
      openBatchedUdpPort({ nowNs: clock, address: V4_B, udpPort: 0 }),
    ];
    /** Whether it has looked again when some rounds of the loop have passed. */
    const looksAgain = async () => {
      for (let round = 0; round < 3; round++) await nextRound();
      const before = looks;
      for (let round = 0; round < 3; round++) await nextRound();
      return looks > before;
    };
    await withPorts([a, b], async () => {
      for (const sends of [true, false]) {
        const received = collect(b);
        sendAll(a, b, [payloads[0]]);
        await until(() => received.length === 1, 'the datagram');
        timeNs += 60_000;
        expect(await looksAgain()).toBe(true);
        if (sends) b.sendBatch(b.beginBatch(timeNs)!);
        timeNs += 60_000;
        expect(await looksAgain()).toBe(sends);
        timeNs += 60_000;
        b.sendBatch(b.beginBatch(timeNs)!); // Who only sends waits for nobody.
        expect(await looksAgain()).toBe(false);
      }
    });
  });

  it('tells of datagrams that came in one piece ahead of them: where they stand, how long and how many they are', async () => {
    const make = (address: IpAddress) => openBatchedUdpPort({ nowNs, address, udpPort: 0 });
    const [a, b] = [make(V4_A), make(V4_B)];
    await withPorts([a, b], async () => {
      let covered = 0;
      let longest = 0;
      let expected = { bytes: new Uint8Array(0) as Uint8Array, at: 0, packetBytes: 0, left: 0 };
      b.onTrain = (bytes, at, packetBytes, packets) => {
        expected = { bytes, at, packetBytes, left: packets };
        longest = Math.max(longest, packets);
      };
      const received = collect(b);
      const hand = b.onDatagram;
      b.onDatagram = (datagram) => {
        if (expected.left > 0) {
          expect(datagram.bytes).toBe(expected.bytes);
          expect([datagram.offset, datagram.length]).toEqual([expected.at, expected.packetBytes]);
          expected.at += expected.packetBytes;
          expected.left--;
          covered++;
        } else expect(datagram.length).toBeLessThan(expected.packetBytes);
        hand(datagram);
      };
      sendAll(a, b, payloads);
      await until(() => received.length === payloads.length, 'all datagrams');
      expect(longest).toBeGreaterThanOrEqual(b.description.includes('GRO') && a.description.includes('GSO') ? 4 : 1);
      expect(covered).toBeGreaterThan(payloads.length / 2);
    });
  });

  it('keeps marked and unmarked datagrams of one length apart', async () => {
    const [a, b] = [
      openBatchedUdpPort({ nowNs, address: V4_A, udpPort: 0 }),
      openBatchedUdpPort({ nowNs, address: V4_B, udpPort: 0 }),
    ];
    await withPorts([a, b], async () => {
      const received = collect(b);
      const ecns = [2, 2, ECN_CE, ECN_CE, 2, 0];
      const batch = a.beginBatch()!;
      for (const ecn of ecns) {
        const slot = batch.count++;
        batch.lengths[slot] = 64;
        batch.destinations[slot] = b.address;
        batch.destinationPorts[slot] = b.udpPort;
        batch.ecns[slot] = ecn;
        batch.dscps[slot] = 10 + ecn;
      }
      a.sendBatch(batch);
      await until(() => received.length === ecns.length, 'all datagrams');
      expect(received.map(({ ecn }) => ecn)).toEqual(ecns);
      expect(received.map(({ dscp }) => dscp)).toEqual(ecns.map((ecn) => 10 + ecn));
    });
  });

  it('counts every datagram of a train that the kernel refuses, and sends what follows', async () => {
    const [a, b] = [
      openBatchedUdpPort({ nowNs, address: V4_A, udpPort: 0 }),
      openBatchedUdpPort({ nowNs, address: V4_B, udpPort: 0 }),
    ];
    await withPorts([a, b], async () => {
      const received = collect(b);
      sendAll(a, { address: V4_B, udpPort: 0 }, [new Uint8Array(20), new Uint8Array(20)]);
      sendAll(a, b, [new Uint8Array(20)]);
      await until(() => received.length === 1, 'the datagram');
      expect(a.counters).toMatchObject({ txDatagrams: 1, txErrors: 2 });
    });
  });

  it('does nothing by itself when its owner polls it', async () => {
    const a = openUdpPort({ address: V4_A, udpPort: 0 });
    const b = openBatchedUdpPort({ nowNs, address: V4_B, udpPort: 0, polled: true });
    await withPorts([a, b], async () => {
      const received = collect(b);
      sendAll(a, b, [new Uint8Array(20)]);
      b.wait(1e9);
      expect(received.length).toBe(0);
      expect(b.receive()).toBe(1);
      expect(received.length).toBe(1);
      const before = performance.now();
      b.wait(20e6);
      expect(performance.now() - before).toBeGreaterThan(10);
    });
  });
});
