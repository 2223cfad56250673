/** What every Port must do, whatever it is made of. Each port's test file runs this suite over its own pairs. */

import { describe, expect, it } from 'vitest';
import { equalBytes } from '../../src/core/bytes.js';
import { SeededRandom } from '../../src/core/random.js';
import { IP_ID_UNKNOWN, type Port, type RxDatagram } from '../../src/port/datagram.js';

export interface PortPair {
  /** Two open ports that reach each other. */
  readonly a: Port;
  readonly b: Port;
  /** A port, not open, that wants the same local socket as `a`. */
  conflicting(): Port;
  /** Ends whatever stands behind the ports; the suite closes the ports themselves. */
  dispose?(): Promise<void>;
}

export interface PortTraits {
  /** Whether receivers see the sender's ECN and DSCP. */
  readonly seesTrafficClass: boolean;
  /** Whether they see the IPv4 identification, and senders choose it. */
  readonly seesIpId: boolean;
}

/** What a test keeps of a received datagram: the port's own record is reused. */
export interface Received extends Omit<RxDatagram, 'bytes' | 'offset' | 'length'> {
  readonly payload: Uint8Array;
}

export function collect(port: Port): Received[] {
  const received: Received[] = [];
  port.onDatagram = (datagram) => {
    const { bytes, offset, length, ...rest } = datagram;
    received.push({ ...rest, payload: Uint8Array.from(bytes.subarray(offset, offset + length)) });
  };
  return received;
}

export interface OutgoingFields {
  readonly sourcePort?: number;
  readonly ecn?: number;
  readonly dscp?: number;
  readonly firstIpId?: number;
}

/** Sends `payloads` from one port to another, as the engine does: into the slots of batches. */
export function sendAll(
  from: Port,
  to: Pick<Port, 'address' | 'udpPort'>,
  payloads: readonly Uint8Array[],
  fields: OutgoingFields = {},
): void {
  let next = 0;
  while (next < payloads.length) {
    const batch = from.beginBatch();
    if (batch === undefined) throw new Error('the port has no batch');
    while (next < payloads.length && batch.count < batch.capacity) {
      const slot = batch.count++;
      batch.slab.set(payloads[next], batch.payloadOffset(slot));
      batch.lengths[slot] = payloads[next].length;
      batch.sources[slot] = from.address;
      batch.destinations[slot] = to.address;
      batch.sourcePorts[slot] = from.fixedSourcePort ?? fields.sourcePort ?? 0xc123;
      batch.destinationPorts[slot] = to.udpPort;
      batch.ecns[slot] = fields.ecn ?? 0;
      batch.dscps[slot] = fields.dscp ?? 0;
      batch.ipIds[slot] = (fields.firstIpId ?? 0) + next;
      next++;
    }
    from.sendBatch(batch);
  }
}

/** Turns the event loop until `done`, or fails: nothing here takes a second on loopback. */
export async function until(done: () => boolean, what: string): Promise<void> {
  const deadline = Date.now() + 5_000;
  while (!done()) {
    if (Date.now() > deadline) throw new Error(`waited in vain for ${what}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Lets everything that is already on its way through loopback arrive. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
}

function randomPayload(random: { u32(): number }, length: number): Uint8Array {
  return Uint8Array.from({ length }, () => random.u32() & 0xff);
}

export function portContract(name: string, traits: PortTraits, openPair: () => Promise<PortPair>): void {
  const withPair = async (body: (pair: PortPair) => Promise<void>): Promise<void> => {
    const pair = await openPair();
    try {
      await body(pair);
    } finally {
      await Promise.all([pair.a.close(), pair.b.close()]);
      await pair.dispose?.();
    }
  };

  describe(`${name}: port contract`, () => {
    it('carries datagrams of 20 to 4200 bytes whole and in order', () =>
      withPair(async ({ a, b }) => {
        const random = new SeededRandom(1).stream('payloads');
        const lengths = [20, 21, 28, 60, 256, 1023, 1024, 1052, 2048, 4095, 4096, 4124, 4199, 4200];
        const payloads = lengths.map((length) => randomPayload(random, length));
        const received = collect(b);
        sendAll(a, b, payloads);
        await until(() => received.length === payloads.length, 'all datagrams');
        expect(received.map(({ payload }) => payload.length)).toEqual(lengths);
        received.forEach(({ payload }, i) => {
          expect(equalBytes(payload, payloads[i])).toBe(true);
        });
      }));

    it('says truly where a datagram came from and went to', () =>
      withPair(async ({ a, b }) => {
        const received = collect(b);
        sendAll(a, b, [new Uint8Array(20)], { sourcePort: 0xc777, ecn: 2, dscp: 26, firstIpId: 4711 });
        await until(() => received.length === 1, 'the datagram');
        const [datagram] = received;
        expect(datagram.source.text).toBe(a.address.text);
        expect(datagram.destination).toBe(b.address);
        expect(datagram.sourcePort).toBe(a.fixedSourcePort ?? 0xc777);
        expect(datagram.destinationPort).toBe(b.udpPort);
        expect(datagram.ecn).toBe(traits.seesTrafficClass ? 2 : 0);
        expect(datagram.dscp).toBe(traits.seesTrafficClass ? 26 : 0);
        if (a.address.family === 4) expect(datagram.ipId).toBe(traits.seesIpId ? 4711 : IP_ID_UNKNOWN); // A single one: most likely 0.
      }));

    it('hands over the same source object for the same sender', () =>
      withPair(async ({ a, b }) => {
        const received = collect(b);
        sendAll(a, b, [new Uint8Array(20), new Uint8Array(20)]);
        await until(() => received.length === 2, 'both datagrams');
        expect(received[0].source).toBe(received[1].source);
      }));

    it('answers work in the other direction', () =>
      withPair(async ({ a, b }) => {
        const received = collect(a);
        sendAll(b, a, [Uint8Array.of(...Array(20).keys())]);
        await until(() => received.length === 1, 'the answer');
        expect(received[0].payload[19]).toBe(19);
      }));

    it('delivers 10,000 datagrams in bounded rounds, counts them, and never lets a reused batch change what was sent', () =>
      withPair(async ({ a, b }) => {
        const total = 10_000;
        const round = Math.min(64, b.receiveBudgetPackets);
        const payload = new Uint8Array(1052);
        let count = 0;
        let wrong = 0;
        b.onDatagram = ({ bytes, offset, length }) => {
          const number = (bytes[offset] << 8) | bytes[offset + 1];
          if (number !== count || length !== payload.length || bytes[offset + length - 1] !== (number & 0xff)) wrong++;
          count++;
        };
        for (let sent = 0; sent < total; ) {
          const batch = Array.from({ length: Math.min(round, total - sent) }, (_, i) => {
            const copy = payload.slice();
            copy[0] = (sent + i) >> 8;
            copy[1] = sent + i;
            copy[copy.length - 1] = sent + i;
            return copy;
          });
          sendAll(a, b, batch);
          sent += batch.length;
          await until(() => count >= sent, `datagram ${sent}`);
        }
        expect({ count, wrong }).toEqual({ count: total, wrong: 0 });
        expect(a.counters).toEqual({ txDatagrams: total, rxDatagrams: 0, txErrors: 0 });
        expect(b.counters).toEqual({ txDatagrams: 0, rxDatagrams: total, txErrors: 0 });
      }));

    it('gives out empty batches and takes empty ones back', () =>
      withPair(async ({ a }) => {
        const first = a.beginBatch();
        expect(first?.count).toBe(0);
        if (first !== undefined) a.sendBatch(first);
        expect(a.beginBatch()?.count).toBe(0);
        expect(a.counters.txDatagrams).toBe(0);
      }));

    it('has limits the engine can plan with', () =>
      withPair(async ({ a }) => {
        expect([256, 512, 1024, 2048, 4096]).toContain(a.pathMtuMax);
        expect(a.receiveBudgetPackets).toBeGreaterThan(0);
        expect(a.udpPort).toBeGreaterThan(0);
      }));

    it('says what to do when its socket is taken', () =>
      withPair(async (pair) => {
        const second = pair.conflicting();
        await expect(second.open()).rejects.toMatchObject({
          code: 'ERR_ROCE_IO',
          message: expect.stringMatching(/cannot bind UDP .*EADDRINUSE.*another program has the port/),
        });
        await second.close();
      }));

    it('cannot be opened twice', () =>
      withPair(async ({ a }) => {
        await expect(a.open()).rejects.toMatchObject({ code: 'ERR_ROCE_INVALID_STATE' });
      }));

    it('closes once however often it is asked, and is silent afterwards', () =>
      withPair(async ({ a, b }) => {
        const received = collect(b);
        sendAll(a, b, [new Uint8Array(20)]);
        await Promise.all([b.close(), b.close()]);
        await b.close();
        const before = received.length;
        sendAll(a, b, [new Uint8Array(20)]);
        await settle();
        expect(received.length).toBe(before);
        expect(b.beginBatch()).toBeUndefined();
        await expect(b.open()).rejects.toMatchObject({ code: 'ERR_ROCE_INVALID_STATE' });
      }));
  });
}
