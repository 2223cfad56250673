import { describe, expect, it } from 'vitest';
import { NAK_PSN_SEQUENCE } from '../../../src/packet/aeth.js';
import { CNP, RC_ACK, RC_READ_REQUEST, RC_READ_RESPONSE_MIDDLE, RC_WRITE_MIDDLE } from '../../../src/packet/opcode.js';
import { emitRoce } from '../../../src/packet/roce.js';
import { RECEIVED, SENT } from '../../../src/port/capture/observed-port.js';
import { PacketRing, type RecordedPacket } from '../../../src/port/capture/packet-ring.js';
import { type PsnPosition, packetStory } from '../src/lab/packet-story.js';

const QPN_A = 0x11;
const QPN_B = 0x22;

/** Two endpoints and the wire between them, by hand: one packet a nanosecond. */
class Wire {
  nowNs = 0;
  readonly rings = { a: new PacketRing(256, () => this.nowNs), b: new PacketRing(256, () => this.nowNs) };
  readonly ipIds = { a: 0, b: 0 };
  /** PSN 100 is the first of each connection. */
  readonly positions: Record<'a' | 'b', PsnPosition> = { a: { psn: 100, count: 0 }, b: { psn: 100, count: 0 } };

  send(from: 'a' | 'b', packet: Uint8Array, fate: 'arrives' | 'lost' = 'arrives'): void {
    this.nowNs++;
    const ipId = this.ipIds[from]++ & 0xffff;
    this.rings[from].packet(SENT, packet, 0, packet.length, ipId);
    const to = from === 'a' ? this.rings.b : this.rings.a;
    if (fate === 'arrives') to.packet(RECEIVED, packet, 0, packet.length, ipId);
  }

  get story() {
    const end = (name: 'a' | 'b', qpn: number) => ({
      qpns: [qpn],
      positions: [this.positions[name]],
      packets: this.rings[name].packets(),
    });
    return packetStory(end('a', QPN_A), end('b', QPN_B)).packets;
  }
}

const data = (psn: number) => emitRoce({ opcode: RC_WRITE_MIDDLE, destQpn: QPN_B, psn }, new Uint8Array(256));
const nak = (psn: number) => emitRoce({ opcode: RC_ACK, destQpn: QPN_A, psn, syndrome: NAK_PSN_SEQUENCE });

describe('the story of the last packets', () => {
  it('tells what was lost and what was sent again, from shortly before the loss', () => {
    const wire = new Wire();
    for (let psn = 100; psn < 120; psn++) wire.send('a', data(psn), psn === 110 ? 'lost' : 'arrives');
    wire.send('b', nak(110));
    for (const psn of [110, 111]) wire.send('a', data(psn));
    wire.send('b', nak(112));
    const story = wire.story;
    expect(story[0]).toMatchObject({ timeNs: 0, from: 'a', psn: 104, relativePsn: 4, lane: 0, isDropped: false });
    expect(story.filter(({ isDropped }) => isDropped).map(({ psn }) => psn)).toEqual([110]);
    expect(story.filter(({ isRepeated }) => isRepeated).map(({ psn }) => psn)).toEqual([110, 111]);
    expect(story.filter(({ kind }) => kind === 'nak')).toMatchObject([
      { from: 'b', psn: 110, relativePsn: 10, operation: 'NAK PSN_SEQUENCE_ERROR' },
      { psn: 112 },
    ]);
  });

  it('lasts until the NAK, however many packets were sent before it', () => {
    const wire = new Wire();
    for (let psn = 100; psn < 300; psn++) wire.send('a', data(psn), psn === 110 ? 'lost' : 'arrives');
    wire.send('b', nak(110));
    for (const psn of [110, 111]) wire.send('a', data(psn));
    wire.send('b', nak(112));
    expect(wire.story[0].psn).toBe(104);
    expect(wire.story.findIndex(({ kind }) => kind === 'nak')).toBe(196);
  });

  it('has nothing from before it was forgotten', () => {
    const wire = new Wire();
    for (let psn = 100; psn < 120; psn++) wire.send('a', data(psn), psn === 110 ? 'lost' : 'arrives');
    for (const ring of Object.values(wire.rings)) ring.clear();
    expect(wire.story).toEqual([]);
    for (let psn = 120; psn < 130; psn++) wire.send('a', data(psn));
    expect(wire.story.map(({ psn, isDropped }) => [psn, isDropped])).toEqual(
      Array.from({ length: 10 }, (_, i) => [120 + i, false]),
    );
  });

  it('numbers packets from the start of the connection, also where go-back-0 goes back behind what it remembers', () => {
    const wire = new Wire();
    wire.positions.a = { psn: 4, count: 2 ** 24 + 20 }; // 2^24 PSNs have gone round once
    for (const psn of [0xfffffe, 0xffffff, 0]) wire.send('a', data(psn));
    wire.send('b', nak(0xfffff0));
    for (const psn of [0xfffff0, 0xfffff1]) wire.send('a', data(psn));
    const first = 2 ** 24 + 14; // of PSN 0xfffffe
    expect(wire.story.map(({ relativePsn }) => relativePsn)).toEqual(
      [0, 1, 2, -14, -14, -13].map((offset) => first + offset),
    );
  });

  it('numbers READ responses as the requests of the other end', () => {
    const wire = new Wire();
    wire.positions.b = { psn: 0x500, count: 0 };
    wire.send('b', emitRoce({ opcode: RC_READ_REQUEST, destQpn: QPN_A, psn: 0x500 }));
    for (const psn of [0x500, 0x501]) {
      wire.send('a', emitRoce({ opcode: RC_READ_RESPONSE_MIDDLE, destQpn: QPN_B, psn }, new Uint8Array(256)));
    }
    wire.send('b', emitRoce({ opcode: RC_READ_REQUEST, destQpn: QPN_A, psn: 0x502 }));
    expect(wire.story.map(({ kind, relativePsn }) => [kind, relativePsn])).toEqual([
      ['request', 0],
      ['data', 0],
      ['data', 1],
      ['request', 2],
    ]);
  });

  it('gives no number to a CNP, which has no PSN of its own', () => {
    const wire = new Wire();
    wire.send('b', emitRoce({ opcode: CNP, destQpn: QPN_A, psn: 0 }, new Uint8Array(16)));
    expect(wire.story).toMatchObject([{ kind: 'cnp', relativePsn: null }]);
  });

  it('tells when packets arrived, and that lost ones did not', () => {
    const wire = new Wire();
    wire.send('a', data(100));
    wire.send('a', data(101), 'lost');
    wire.send('a', data(102));
    expect(wire.story.map(({ timeNs, arrivedNs }) => [timeNs, arrivedNs])).toEqual([
      [0, 0],
      [1, null],
      [2, 2],
    ]);
  });

  it('keeps the order of time over both directions', () => {
    const wire = new Wire();
    wire.send('a', data(1));
    wire.send('b', nak(1));
    wire.send('a', data(2));
    expect(wire.story.map(({ from, timeNs }) => [from, timeNs])).toEqual([
      ['a', 0],
      ['b', 1],
      ['a', 2],
    ]);
  });

  it('says nothing of packets whose fate is not known, and of other queue pairs', () => {
    const wire = new Wire();
    wire.send('a', data(1));
    wire.send('a', emitRoce({ opcode: RC_READ_REQUEST, destQpn: 0x99, psn: 5 }));
    wire.send('a', data(2));
    wire.send('a', data(3), 'lost'); // or still under way
    expect(wire.story.map(({ psn }) => psn)).toEqual([1, 2]);
  });

  it('is empty before anything has passed', () => {
    expect(new Wire().story).toEqual([]);
  });
});

describe('the packet ring', () => {
  const seen = (ring: PacketRing) => ring.packets().map(({ psn }: RecordedPacket) => psn);

  it('remembers the last packets, oldest first', () => {
    const ring = new PacketRing(3, () => 0);
    for (let psn = 0; psn < 5; psn++) ring.packet(SENT, data(psn), 0, 272, psn);
    expect(seen(ring)).toEqual([2, 3, 4]);
  });

  it('reads an AETH only where there is one, and nothing from what is too short', () => {
    const ring = new PacketRing(4, () => 0);
    ring.packet(RECEIVED, nak(7), 0, nak(7).length, 0);
    ring.packet(RECEIVED, nak(8), 0, 12, 1); // cut before the AETH
    ring.packet(RECEIVED, nak(9), 0, 11, 2);
    expect(ring.packets().map(({ syndrome }) => syndrome)).toEqual([NAK_PSN_SEQUENCE, undefined]);
    expect(seen(ring)).toEqual([7, 8]);
  });
});
