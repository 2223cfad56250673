import { describe, expect, it } from 'vitest';
import { IpAddress } from '../../src/packet/address.js';
import {
  RC_ACK,
  RC_READ_REQUEST,
  RC_READ_RESPONSE_FIRST,
  RC_READ_RESPONSE_LAST,
  RC_SEND_ONLY,
} from '../../src/packet/opcode.js';
import { emitRoce, type RoceFields } from '../../src/packet/roce.js';
import { decodeRoce } from '../../src/port/capture/decoded-packet.js';
import { FlowTracker } from '../../src/port/capture/flow-tracker.js';

const A = IpAddress.parse('10.0.0.1');
const B = IpAddress.parse('10.0.0.2');

/** What the tracker says of each packet; requests go from A to B, `back: true` turns a packet round. */
function story(
  ...packets: (RoceFields & { readonly back?: boolean; readonly bytes?: number; readonly interfaceId?: number })[]
) {
  const tracker = new FlowTracker();
  const events = packets.map(({ back, bytes, interfaceId = 0, ...fields }) => {
    const emitted = emitRoce({ destQpn: 0x11, ...fields }, new Uint8Array(bytes ?? 0));
    const payload = new Uint8Array(emitted.length + 4);
    payload.set(emitted);
    const [source, destination] = back ? [B, A] : [A, B];
    const datagram = { source, destination, sourcePort: 4791, destinationPort: 4791, ecn: 0, ipPacket: payload };
    const packet = decodeRoce(
      { ...datagram, udpOffset: 0, payload, payloadBytes: payload.length },
      { number: 1, timeNs: 0, interfaceId },
      false,
    );
    return tracker
      .observe(packet)
      .map((event) => (event.kind === 'gap' ? `gap ${event.missing}` : event.kind))
      .join();
  });
  return { events, summaries: tracker.summaries };
}

const send = (psn: number) => ({ opcode: RC_SEND_ONLY, psn });
const read = (psn: number, dmaLength: number) => ({ opcode: RC_READ_REQUEST, psn, dmaLength });

describe('requests', () => {
  it('in order, across the wrap of the PSN, tell no story', () => {
    expect(story(send(0xfffffe), send(0xffffff), send(0), send(1)).events).toEqual(['', '', '', '']);
  });

  it('a skipped PSN is a gap, and what comes later for it is a retransmission', () => {
    const { events, summaries } = story(send(0xfffffe), send(1), send(0xffffff), send(0), send(2));
    expect(events).toEqual(['', 'gap 2', 'retransmission', 'retransmission', '']);
    expect(summaries).toMatchObject([{ packets: 5, retransmitted: 2, gaps: 1, missingPsns: 2 }]);
  });

  it('a READ takes the PSNs of its responses once the path MTU has been seen', () => {
    const response = { opcode: RC_READ_RESPONSE_FIRST, back: true, bytes: 1024 };
    const { events } = story(read(10, 3000), { ...response, psn: 10 }, read(13, 3000), send(16), send(18));
    expect(events).toEqual(['', '', '', '', 'gap 1']);
  });

  it('a READ asked for again from its middle is a retransmission', () => {
    const response = { opcode: RC_READ_RESPONSE_FIRST, back: true, bytes: 1024 };
    expect(story(read(10, 3000), { ...response, psn: 10 }, read(11, 1976)).events).toEqual(['', '', 'retransmission']);
  });

  it('while the path MTU is unknown no gap is claimed that the READ may explain', () => {
    expect(story(read(10, 3000), send(13)).events).toEqual(['', '']);
    expect(story(read(10, 3000), send(23)).events).toEqual(['', 'gap 1']); // twelve at the smallest MTU
  });

  it('seen at both ends of the wire are not sent twice', () => {
    const there = (psn: number) => ({ ...send(psn), interfaceId: 1 });
    const { events, summaries } = story(send(1), there(1), send(2), there(2));
    expect(events).toEqual(['', '', '', '']);
    expect(summaries).toMatchObject([
      { interfaceId: 0, packets: 2 },
      { interfaceId: 1, packets: 2 },
    ]);
  });

  it('of two queue pairs do not mix', () => {
    const other = { ...send(500), destQpn: 0x12 };
    expect(story(send(1), other, send(2), { ...send(501), destQpn: 0x12 }).events).toEqual(['', '', '', '']);
  });
});

describe('responses', () => {
  const part = (opcode: number, psn: number, bytes: number) => ({ opcode, psn, bytes });

  it('a jump inside a READ response is a gap, between two it is not', () => {
    const inside = story(part(RC_READ_RESPONSE_FIRST, 5, 256), part(RC_READ_RESPONSE_LAST, 8, 9));
    expect(inside.events).toEqual(['', 'gap 2']);
    const between = story(part(RC_READ_RESPONSE_LAST, 5, 9), part(RC_READ_RESPONSE_FIRST, 8, 256));
    expect(between.events).toEqual(['', '']);
  });

  it('acknowledgements may repeat, and only NAKs are news', () => {
    const ack = (psn: number, syndrome: number) => ({ opcode: RC_ACK, psn, syndrome });
    const { events, summaries } = story(ack(9, 0x1f), ack(9, 0x1f), ack(7, 0x60), ack(7, 0x2c));
    expect(events).toEqual(['', '', 'nak', 'rnr_nak']);
    expect(summaries).toMatchObject([{ naks: 1, rnrNaks: 1, retransmitted: 0 }]);
  });
});
