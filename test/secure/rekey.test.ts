/** Keys change while packets are lost, late and out of order, while clocks jump, and with traffic in one direction alone. */

import { describe, expect, it } from 'vitest';
import { IpAddress } from '../../src/packet/address.js';
import { writeEmptyPsp } from '../../src/packet/psp.js';
import { Association, FORGED, OPENED, REPLAYED, type RekeyLimits } from '../../src/port/secure/association.js';
import { NodeCipher } from '../../src/port/secure/packet-cipher.js';
import { createPair, type PairOptions } from '../support/pair.js';
import { termsBetween } from '../support/protected-host.js';

const HEADER = 16;
const PACKET = HEADER + 16;

/** Both ends of an association, without ports: empty packets stand for all. */
class Ends {
  readonly a: Association;
  readonly b: Association;
  nowNs = 0;

  constructor(limits: RekeyLimits) {
    const [ofA, ofB] = termsBetween('192.0.2.1', '192.0.2.2');
    const make = (terms: typeof ofA) =>
      new Association(terms, IpAddress.parse(terms.peer), (key) => new NodeCipher(key), 0, limits);
    this.a = make(ofA);
    this.b = make(ofB);
  }

  /** A packet of `from`; undefined where its keys are used up. */
  seal(from: Association): Uint8Array | undefined {
    if (!from.prepare(this.nowNs)) return undefined;
    const packet = new Uint8Array(PACKET);
    writeEmptyPsp(packet, 0, 0, from.spi, from.ivHigh, from.ivLow);
    from.seal(packet, HEADER, 0, packet, 0, HEADER);
    return packet;
  }

  open(at: Association, packet: Uint8Array): number {
    return at.open(packet, 0, PACKET, HEADER, packet, HEADER, this.nowNs);
  }

  /** From a to b, so many that are sent and so many of them lost at the end. */
  send(count: number, from = this.a, to = this.b): number[] {
    return Array.from({ length: count }, () => this.open(to, this.seal(from)!));
  }
}

describe('a change of keys', () => {
  it('needs an answer, not a message: the other end follows with its next packet', () => {
    const ends = new Ends({ packets: 4 });
    ends.send(4);
    expect([ends.a.epoch, ends.b.epoch]).toEqual([0, 0]);
    expect(ends.send(1)).toEqual([OPENED]);
    expect([ends.a.epoch, ends.b.epoch]).toEqual([1, 1]);
    expect(ends.send(20)).toEqual(Array(20).fill(OPENED)); // b says nothing: a stays.
    expect(ends.a.epoch).toBe(1);
    expect(ends.b.hasToConfirm).toBe(true);
    expect(ends.send(1, ends.b, ends.a)).toEqual([OPENED]);
    expect(ends.b.hasToConfirm).toBe(false);
    expect(ends.send(1)).toEqual([OPENED]);
    expect([ends.a.epoch, ends.b.epoch]).toEqual([2, 2]);
  });

  it('is begun by one end, also for what the other sends', () => {
    const ends = new Ends({ packets: 4 });
    ends.send(1);
    expect(ends.send(10, ends.b, ends.a)).toEqual(Array(10).fill(OPENED));
    expect(ends.b.epoch).toBe(0);
    ends.send(1);
    expect([ends.a.epoch, ends.b.epoch]).toEqual([1, 1]);
  });

  it('survives any loss, and late packets of the last key are opened once', () => {
    const ends = new Ends({ packets: 3 });
    const [, late] = [ends.send(1), ends.seal(ends.a)!, ends.seal(ends.a)!];
    for (let n = 0; n < 50; n++) ends.seal(ends.a); // All lost; among them the first of the new key.
    expect(ends.send(1)).toEqual([OPENED]);
    expect(ends.b.epoch).toBe(1);
    expect(ends.open(ends.b, late)).toBe(OPENED);
    expect(ends.open(ends.b, late)).toBe(REPLAYED);
  });

  it('the last key is forgotten in time, whatever the clock does', () => {
    const ends = new Ends({ packets: 2, oldKeyNs: 1e9 });
    const late = ends.seal(ends.a)!;
    ends.send(3);
    ends.nowNs += 1e15; // The machine slept for days.
    expect(ends.open(ends.b, late)).toBe(FORGED);
    expect(ends.send(10)).toEqual(Array(10).fill(OPENED));
    expect(ends.send(10, ends.b, ends.a)).toEqual(Array(10).fill(OPENED));
  });

  it('comes with time, too', () => {
    const ends = new Ends({ ns: 3600e9 });
    ends.send(1);
    ends.nowNs = 3600e9;
    expect(ends.send(1)).toEqual([OPENED]);
    expect(ends.a.epoch).toBe(1);
  });

  it('is not made by a forged phase bit', () => {
    const ends = new Ends({});
    const packet = ends.seal(ends.a)!;
    packet[4] ^= 0x80;
    expect(ends.open(ends.b, packet)).toBe(FORGED);
    packet[4] ^= 0x80;
    expect(ends.open(ends.b, packet)).toBe(OPENED);
    expect(ends.b.epoch).toBe(0);
  });

  it('that the peer does not follow ends what may be sent: a key never seals more than its maximum', () => {
    const ends = new Ends({ packets: 4, packetsMax: 10 });
    let sealed = 0;
    for (let n = 0; n < 100; n++) if (ends.seal(ends.a) !== undefined) sealed++;
    expect(sealed).toBe(4 + 10);
  });
});

describe('a connection whose keys change every few packets', () => {
  const run = async (options: PairOptions) => {
    const pair = await createPair({ mtu: 256, ...options });
    const { a, b } = pair;
    for (let n = 0; n < 20; n++) {
      a.mr.bytes.fill(n, 0, 20_000);
      a.qp.postSend({ opcode: 'RDMA_WRITE', sges: [a.mr.sge(0, 20_000)], remoteAddr: b.mr.addr, rkey: b.mr.rkey });
      expect(pair.completions(a.cq, 1)[0].statusName).toBe('SUCCESS');
    }
    expect(b.mr.bytes.subarray(0, 20_000).equals(Buffer.alloc(20_000, 19))).toBe(true);
    return { pair, a: a.device.counters(), b: b.device.counters() };
  };

  it.each([
    ['nothing', ''],
    ['loss', 'random=0.05'],
    ['reordering', 'a>b:reorder=0.1,5'],
    ['loss, reordering and duplicates', 'random=0.03;a>b:reorder=0.05,7;duplicate=0.05'],
  ])('delivers everything under %s, and finds nothing forged', async (_, faults) => {
    const { a, b } = await run({ secure: { rekey: { packets: 16 } }, ...(faults !== '' && { faults }) });
    expect(a.secure_rekeys).toBeGreaterThan(20);
    expect([a.secure_drop_forged, b.secure_drop_forged, a.secure_tx_drop_exhausted]).toEqual([0, 0, 0]);
    expect(b.secure_drop_replayed > 0).toBe(faults.includes('duplicate'));
  });

  it('takes no more time than without: there is no stall', async () => {
    const [plain, rekeyed] = [await run({}), await run({ secure: { rekey: { packets: 16 } } })];
    // 40 bytes more for 256 of payload; acknowledgements double.
    expect(rekeyed.pair.events.nowNs).toBeLessThan(1.2 * plain.pair.events.nowNs);
    expect(rekeyed.a.local_ack_timeout_err).toBe(0);
  });
});
