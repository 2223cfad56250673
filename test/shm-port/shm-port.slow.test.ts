/** The port through shared memory, over real sockets and rings of this process. */

import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { SeededRandom } from '../../src/core/random.js';
import { batchedUdpAvailable, openBatchedUdpPort } from '../../src/dgram-ext/index.js';
import { nowNs } from '../../src/driver/system-clock.js';
import { IpAddress } from '../../src/packet/address.js';
import type { Port, TxBatch } from '../../src/port/datagram.js';
import { PEERS_MAX } from '../../src/port/shm/outgoing-rings.js';
import { RING_SLOTS } from '../../src/port/shm/shared-ring.js';
import { openShmPort, type SharedMemoryPort, type ShmPortOptions } from '../../src/port/shm/shm-port.js';
import { collect, type PortPair, portContract, sendAll, until } from '../contracts/port-contract.js';
import { mappedRings } from '../support/mapped-rings.js';

const A = IpAddress.parse('127.53.8.1');
const B = IpAddress.parse('127.53.8.2');
const C = IpAddress.parse('127.53.8.3');
const missing = batchedUdpAvailable();
let seed = 0;

const shmPort = (address: IpAddress, udpPort = 0, options: Partial<ShmPortOptions> = {}) =>
  openShmPort({ nowNs, address, udpPort, random: new SeededRandom(++seed).stream('ring'), ...options });

async function meet(a: SharedMemoryPort, b: SharedMemoryPort): Promise<void> {
  let shares = [false, false];
  for (let i = 0; i < 10 && shares.includes(false); i++) {
    shares = await Promise.all([a.share(b.address, b.udpPort), b.share(a.address, a.udpPort)]);
  }
  expect(shares).toEqual([true, true]);
}

async function openPair(
  options: Partial<ShmPortOptions> = {},
): Promise<PortPair & { readonly a: SharedMemoryPort; readonly b: SharedMemoryPort }> {
  const [a, b] = [shmPort(A, 0, options), shmPort(B, 0, options)];
  await Promise.all([a.open(), b.open()]);
  await meet(a, b);
  return { a, b, conflicting: () => shmPort(A, a.udpPort, options) };
}

if (missing === undefined) portContract('shared memory', { seesTrafficClass: true, seesIpId: true }, () => openPair());
if (missing === undefined) {
  const traits = { seesTrafficClass: true, seesIpId: true };
  portContract('shared memory with named peers', traits, () => openPair({ offers: 'named' }));
}

describe.skipIf(missing !== undefined)('a port through shared memory (needs koffi on Linux)', () => {
  async function withPorts<T extends readonly Port[]>(ports: T, body: (...ports: T) => Promise<void>): Promise<void> {
    await Promise.all(ports.map((port) => port.open()));
    try {
      await body(...ports);
    } finally {
      await Promise.all(ports.map((port) => port.close()));
    }
  }
  /** Adds a datagram of 100 bytes. */
  const fill = (batch: TxBatch, to: Port, byte: number) => {
    const slot = batch.count++;
    batch.slab.fill(byte, batch.payloadOffset(slot), batch.payloadOffset(slot) + 100);
    batch.lengths[slot] = 100;
    batch.sources[slot] = A;
    batch.destinations[slot] = to.address;
    batch.destinationPorts[slot] = to.udpPort;
    batch.ecns[slot] = 0;
    batch.dscps[slot] = 0;
    batch.ipIds[slot] = batch.trainIndex(slot);
  };
  const named = (address: IpAddress, udpPort = 0, options: Partial<ShmPortOptions> = {}) =>
    shmPort(address, udpPort, { offers: 'named', ...options });
  const numbered = (count: number, from = 0) =>
    Array.from({ length: count }, (_, i) => new Uint8Array(100).fill(from + i));

  it('goes through the socket until the peer reads the ring, then through the ring, and loses nothing', () =>
    withPorts([shmPort(A), shmPort(B)] as const, async (a, b) => {
      const received = collect(b);
      for (let i = 0; i < 40; i++) {
        sendAll(a, b, numbered(1, i));
        await until(() => received.length === i + 1, `datagram ${i}`);
      }
      expect(received.map(({ payload }) => payload[0])).toEqual([...Array(40).keys()]);
      expect(await a.share(b.address, b.udpPort)).toBe(true);
      expect(a.counters.txDatagrams).toBe(40);
      expect(b.counters.rxDatagrams).toBe(40);
    }));

  it('goes on from the socket to a ring between batches, in order also for a peer that reads all the time', () =>
    withPorts([shmPort(A), shmPort(B, 0, { polled: true })] as const, async (a, b) => {
      const received: number[] = [];
      b.onDatagram = ({ bytes, offset }) => received.push(bytes[offset]);
      const get = () => {
        b.receive(true);
        return b.address;
      };
      /** Whenever a datagram of the batch is looked at, the peer reads what has been sent. */
      const sendWatched = (first: number, count: number) => {
        const batch = a.beginBatch()!;
        for (let slot = 0; slot < count; slot++) {
          fill(batch, b, first + slot);
          Object.defineProperty(batch.destinations, slot, { get, configurable: true });
        }
        a.sendBatch(batch);
        for (let slot = 0; slot < count; slot++) {
          Object.defineProperty(batch.destinations, slot, { value: b.address, writable: true });
        }
      };
      for (let i = 0; i < 5; i++) sendWatched(5 * i, 5);
      for (let i = 0; i < 3; i++) b.receive(true);
      expect(received).toEqual([...Array(25).keys()]);
      expect(await a.share(b.address, b.udpPort)).toBe(true); // It has gone on to the ring, on the way.
    }));

  it('speaks with a port that knows no rings as before: the offers are packets that it drops', () =>
    withPorts([shmPort(A), openBatchedUdpPort({ nowNs, address: B, udpPort: 0 })] as const, async (a, b) => {
      const received = collect(b);
      sendAll(a, b, numbered(5));
      await until(() => received.length === 6, 'all datagrams, and an offer');
      expect(received.filter(({ payload }) => payload.length === 100)).toHaveLength(5);
      expect(received.filter(({ payload }) => payload[0] === 0xff)).toHaveLength(1);
      expect(await a.share(b.address, b.udpPort)).toBe(false);
    }));

  it('parts a batch between a ring and the socket', () =>
    withPorts(
      [shmPort(A), shmPort(B), openBatchedUdpPort({ nowNs, address: C, udpPort: 0 })] as const,
      async (a, b, c) => {
        await meet(a, b);
        const [byRing, bySocket] = [collect(b), collect(c)];
        const batch = a.beginBatch()!;
        const to = [c, b, b, c, c, b, c];
        for (const [slot, port] of to.entries()) fill(batch, port, slot);
        a.sendBatch(batch);
        const isPacket = ({ payload }: { payload: Uint8Array }) => payload.length === 100;
        await until(() => byRing.length === 3 && bySocket.filter(isPacket).length === 4, 'both parts');
        expect(byRing.map(({ payload }) => payload[0])).toEqual([1, 2, 5]);
        expect(bySocket.filter(isPacket).map(({ payload }) => payload[0])).toEqual([0, 3, 4, 6]);
      },
    ));

  it('wakes a port that sleeps, each time', () =>
    withPorts([shmPort(A), shmPort(B)] as const, async (a, b) => {
      await meet(a, b);
      const received = collect(b);
      for (let i = 0; i < 20; i++) {
        await new Promise((resolve) => setTimeout(resolve, 5)); // timer: until nobody spins any more
        sendAll(a, b, numbered(1, i));
        await until(() => received.length === i + 1, `datagram ${i}`);
      }
    }));

  it('wakes a port that sleeps although all batches were out when it should have: a port is asked once', () =>
    withPorts([shmPort(A, 0, { batches: 1 }), shmPort(B)] as const, async (a, b) => {
      await meet(a, b);
      const received = collect(b);
      for (let i = 0; i < 5; i++) {
        await new Promise((resolve) => setTimeout(resolve, 5)); // timer: until nobody spins any more
        const [inRing, only] = [a.beginBatch()!, a.beginBatch()!];
        expect(a.beginBatch()).toBeUndefined();
        fill(inRing, b, 2 * i);
        a.sendBatch(inRing); // A doorbell would have to leave in a batch.
        fill(only, b, 2 * i + 1);
        a.sendBatch(only);
        await until(() => received.length === 2 * i + 2, `datagram ${2 * i + 1}`);
      }
      expect(received.map(({ payload }) => payload[0])).toEqual([...Array(10).keys()]);
    }));

  it('says that it has delivered behind the datagrams of the socket and of rings, awake and woken, before anything that they resolve runs', () =>
    withPorts([shmPort(A), shmPort(B)] as const, async (a, b) => {
      let received = 0;
      let undelivered = 0;
      let late = 0;
      b.onDatagram = () => {
        received++;
        undelivered++;
        queueMicrotask(() => {
          if (undelivered > 0) late++;
        });
      };
      b.onDelivered = () => {
        undelivered = 0;
      };
      const sendAndLook = async (count: number) => {
        const before = received;
        sendAll(a, b, numbered(count));
        await until(() => received === before + count, 'all datagrams');
      };
      await sendAndLook(3); // By the socket.
      await meet(a, b);
      for (let i = 0; i < 3; i++) {
        await sendAndLook(1);
        await sendAndLook(3);
        await new Promise((resolve) => setTimeout(resolve, 5)); // timer: until nobody spins any more
      }
      expect([received, undelivered, late]).toEqual([15, 0, 0]);
    }));

  it('waits while a ring is full, and goes on in order', () =>
    withPorts([shmPort(A), shmPort(B)] as const, async (a, b) => {
      await meet(a, b);
      const received = collect(b);
      // More than the ring holds, less than the batches and the ring: nobody reads meanwhile.
      const count = RING_SLOTS + 100;
      sendAll(a, b, numbered(count));
      expect(a.counters.txErrors).toBe(0);
      await until(() => received.length === count, 'all datagrams');
      expect(received.map(({ payload }) => payload[0])).toEqual([...Array(count).keys()].map((i) => i & 0xff));
    }));

  it('goes back to the socket when the peer closes, and finds the next one', () =>
    withPorts([shmPort(A)] as const, async (a) => {
      const first = shmPort(B);
      await first.open();
      const { udpPort } = first;
      await meet(a, first);
      await first.close();
      expect(await a.share(B, udpPort)).toBe(false);
      const second = shmPort(B, udpPort);
      await second.open();
      try {
        const received = collect(second);
        sendAll(a, second, numbered(3));
        await until(() => received.length === 3, 'datagrams through the socket');
        await meet(a, second);
        sendAll(a, second, numbered(3));
        await until(() => received.length === 6, 'datagrams through the ring');
      } finally {
        await second.close();
      }
    }));

  it.each(['itself', 'another port'])(
    'takes back a ring that %s reads, and goes on by the socket as if there had been none',
    (reader) =>
      withPorts([named(A), named(B)] as const, async (a, other) => {
        const b = reader === 'itself' ? a : other;
        const ringsBefore = mappedRings();
        expect(await Promise.all([a.share(b.address, b.udpPort), b.share(a.address, a.udpPort)])).toEqual([true, true]);
        const received = collect(b);
        sendAll(a, b, numbered(3));
        await until(() => received.length === 3, 'the datagrams of the ring');
        expect(mappedRings()).toBeGreaterThan(ringsBefore);
        a.unshare(b.address, b.udpPort);
        if (b !== a) b.unshare(a.address, a.udpPort);
        await until(() => mappedRings() === ringsBefore, 'the memory is given back');
        sendAll(a, b, numbered(2, 3));
        await until(() => received.length === 5, 'the datagrams of the socket');
        expect(received.map(({ payload }) => payload[0])).toEqual([0, 1, 2, 3, 4]);
        expect(mappedRings()).toBe(ringsBefore);
      }),
  );

  it('lets a port close while a datagram is handed over', () =>
    withPorts([shmPort(A), shmPort(B)] as const, async (a, b) => {
      await meet(a, b);
      let handed = 0;
      let closing: Promise<void> | undefined;
      b.onDatagram = () => {
        handed++;
        closing ??= b.close();
      };
      sendAll(a, b, numbered(50));
      await until(() => closing !== undefined, 'the first datagram');
      await closing;
      expect(handed).toBe(1);
    }));

  describe('that offers rings to named peers only', () => {
    it('sends nothing but packets to a peer that nobody has named', () =>
      withPorts([named(A), openBatchedUdpPort({ nowNs, address: B, udpPort: 0 })] as const, async (a, b) => {
        const before = mappedRings();
        const received = collect(b);
        for (let i = 0; i < 10; i++) {
          sendAll(a, b, numbered(1, i));
          await until(() => received.length === i + 1, `datagram ${i}`);
        }
        expect(received.every(({ payload }) => payload.length === 100)).toBe(true);
        expect(a.counters.txDatagrams).toBe(10);
        expect(mappedRings()).toBe(before);
      }));

    it('takes no ring of a peer that it was not told of', () =>
      withPorts([shmPort(A), named(B)] as const, async (a, b) => {
        const received = collect(b);
        expect(await a.share(b.address, b.udpPort)).toBe(false);
        sendAll(a, b, numbered(3));
        await until(() => received.length === 3, 'all datagrams');
      }));

    it('leaves nothing behind of an offer that nobody takes', () =>
      withPorts([named(A), openBatchedUdpPort({ nowNs, address: B, udpPort: 0 })] as const, async (a, b) => {
        const before = mappedRings();
        const sharing = a.share(b.address, b.udpPort);
        expect(mappedRings()).toBe(before + 1);
        expect(await sharing).toBe(false);
        expect(mappedRings()).toBe(before);
      }));

    it('waits for no peer of another host', () =>
      withPorts([named(A, 0, { nowNs: () => 1e9 })] as const, async (a) => {
        expect(await a.share(IpAddress.parse('192.0.2.1'), 4791)).toBe(false); // By its clock no patience ever ends.
      }));

    it('lends data from where they stand until a peer has been named, and never to a ring by way of its socket', () =>
      withPorts([named(A, 0, { borrows: true }), named(B)] as const, async (a, b) => {
        const lends = () => {
          const batch = a.beginBatch()!;
          const { mayBorrow } = batch;
          a.sendBatch(batch);
          return mayBorrow;
        };
        expect(lends()).toBe(true);
        const sharing = meet(a, b);
        expect(lends()).toBe(false);
        await sharing;
        await b.close();
        expect(await a.share(b.address, b.udpPort)).toBe(false);
        expect(lends()).toBe(true);
      }));

    it.each([
      ['has no room for a further ring says so, and nobody waits', PEERS_MAX, false],
      ['has room for one more takes it', PEERS_MAX - 1, true],
    ])('that %s', (_, others, shares) =>
      withPorts([named(A), named(B)] as const, async (a, b) => {
        // Peers that are not there are offered rings until the patience with them is over.
        const nobody = Array.from({ length: others }, (_, i) => a.share(C, 20_000 + i));
        let isOver = false;
        void Promise.race(nobody).then(() => {
          isOver = true;
        });
        expect(await Promise.all([b.share(A, a.udpPort), a.share(B, b.udpPort)])).toEqual([shares, shares]);
        expect(isOver).toBe(false);
        await Promise.all(nobody);
      }),
    );

    it('shares with many peers, one after the other: who has left makes room', () =>
      withPorts([named(A)] as const, async (a) => {
        for (let i = 0; i < 2 * PEERS_MAX + 1; i++) {
          const peer = named(B);
          await peer.open();
          await meet(a, peer);
          const received = collect(peer);
          sendAll(a, peer, numbered(2));
          await until(() => received.length === 2, 'both datagrams');
          await peer.close();
        }
        expect(mappedRings()).toBeLessThan(2 * PEERS_MAX);
      }));

    /** What is sent to either of two sockets leaves the other one for the port of the other side, as a relay between two networks does it. */
    async function relayBetween(sides: ReadonlyArray<readonly [IpAddress, Port]>): Promise<Socket[]> {
      const sockets = sides.map(() => createSocket('udp4'));
      await Promise.all(
        sockets.map((socket, i) => {
          socket.bind(0, sides[i][0].text);
          return once(socket, 'listening');
        }),
      );
      for (const [i, socket] of sockets.entries()) {
        const { udpPort, address } = sides[1 - i][1];
        socket.on('message', (bytes) => sockets[1 - i].send(bytes, udpPort, address.text));
      }
      return sockets;
    }

    it.each(['named', 'all'] as const)('goes around nobody who relays packets, offering to %s', (offers) =>
      withPorts([shmPort(A, 0, { offers }), shmPort(B, 0, { offers })] as const, async (a, b) => {
        const [R, S] = [IpAddress.parse('127.53.8.4'), IpAddress.parse('127.53.8.5')];
        // Side 0 stands for B towards A, side 1 for A towards B.
        const sockets = await relayBetween([
          [R, a],
          [S, b],
        ]);
        try {
          const [forB, forA] = sockets.map((socket) => socket.address().port);
          let offered = 0;
          sockets[0].on('message', (bytes) => {
            if (bytes[0] === 0xff) offered++;
          });
          expect(await Promise.all([a.share(R, forB), b.share(S, forA)])).toEqual([false, false]);
          expect(offered).toBeGreaterThan(0);
          const received = collect(b);
          const batch = a.beginBatch()!;
          fill(batch, b, 7);
          batch.destinations[0] = R;
          batch.destinationPorts[0] = forB;
          a.sendBatch(batch);
          await until(() => received.length === 1, 'the datagram, by the relay');
          expect(await Promise.all([a.share(b.address, b.udpPort), b.share(a.address, a.udpPort)])).toContain(true);
        } finally {
          for (const socket of sockets) socket.close();
        }
      }),
    );
  });
});
