import { describe, expect, it } from 'vitest';
import { IpAddress } from '../../../src/packet/address.js';
import { ETHERNET_BYTES, parseMac } from '../../../src/packet/ethernet.js';
import { NDP_BYTES, writeNeighborAdvertisement, writeNeighborSolicitation } from '../../../src/packet/ndp.js';
import { NeighborProtocol } from '../../../src/port/frame/neighbor-protocol.js';

const ADDRESS_A = IpAddress.parse('fd00::1');
const ADDRESS_B = IpAddress.parse('fd00::2');
const OLD_MAC = parseMac('02:00:00:00:00:0b');
const NEW_MAC = parseMac('02:00:00:00:00:bb');

describe('bug 21: an IPv6 peer that moves to another MAC address', () => {
  // A destination resolved once and kept with the connection goes on sending to the old station for ever.
  it.each([
    ['advertises it', () => advertisement()],
    ['asks for us from there', () => question()],
  ])('is sent to there as soon as it %s', (_, speak) => {
    const toA: Uint8Array[] = [];
    const toB: Uint8Array[] = [];
    const a = new NeighborProtocol(ADDRESS_A, parseMac('02:00:00:00:00:0a'), (frame) => toB.push(frame));
    const deliver = (frames: Uint8Array[], to: NeighborProtocol) => {
      for (const frame of frames.splice(0)) to.receiveNdp(frame, ETHERNET_BYTES, 0);
    };
    const before = new NeighborProtocol(ADDRESS_B, OLD_MAC, (frame) => toA.push(frame));
    a.lookup(ADDRESS_B, 0);
    deliver(toB, before);
    deliver(toA, a);
    expect(a.lookup(ADDRESS_B, 0)).toEqual(OLD_MAC);

    a.receiveNdp(speak(), ETHERNET_BYTES, 0);
    expect(a.lookup(ADDRESS_B, 0)).toEqual(NEW_MAC);
  });
});

/** The moved peer tells, unasked, where it is. */
function advertisement(): Uint8Array {
  const frame = new Uint8Array(ETHERNET_BYTES + NDP_BYTES);
  writeNeighborAdvertisement(frame, ETHERNET_BYTES, ADDRESS_B.bytes, NEW_MAC, ADDRESS_A.bytes);
  return frame;
}

function question(): Uint8Array {
  const frame = new Uint8Array(ETHERNET_BYTES + NDP_BYTES);
  writeNeighborSolicitation(frame, ETHERNET_BYTES, ADDRESS_B.bytes, NEW_MAC, ADDRESS_A.bytes);
  return frame;
}
