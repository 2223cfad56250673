import { describe, expect, test } from 'vitest';
import { fromHex, readU16, toHex, writeU16 } from '../../src/core/bytes.js';
import { IpAddress } from '../../src/packet/address.js';
import { ARP_BYTES, ARP_REPLY, ARP_REQUEST, ArpPacket, parseArp, writeArp } from '../../src/packet/arp.js';
import { parseMac } from '../../src/packet/ethernet.js';
import {
  multicastMac,
  NDP_BYTES,
  NdpPacket,
  NEIGHBOR_ADVERTISEMENT,
  NEIGHBOR_SOLICITATION,
  parseNdp,
  solicitedNodeAddress,
  writeNeighborAdvertisement,
  writeNeighborSolicitation,
} from '../../src/packet/ndp.js';

const MAC_A = parseMac('02:00:00:00:00:01');
const MAC_B = parseMac('02:00:00:00:00:02');
const A6 = IpAddress.parse('fd77::2').bytes;
const B6 = IpAddress.parse('fd77::abcd:ef01').bytes;

describe('ARP', () => {
  const A4 = IpAddress.parse('10.77.0.2').bytes;
  const B4 = IpAddress.parse('10.77.0.3').bytes;
  const request = new Uint8Array(ARP_BYTES + 1);
  writeArp(request, 1, ARP_REQUEST, MAC_A, A4, new Uint8Array(6), B4);

  test('a request has the bytes of RFC 826 and is read back', () => {
    expect(toHex(request.subarray(1))).toBe(
      toHex(fromHex('0001 0800 06 04 0001 020000000001 0a4d0002 000000000000 0a4d0003')),
    );
    const packet = new ArpPacket();
    expect(parseArp(request, 1, ARP_BYTES, packet)).toBe(true);
    expect(packet.operation).toBe(ARP_REQUEST);
    expect(toHex(packet.senderMac)).toBe('020000000001');
    expect(toHex(packet.senderIp)).toBe('0a4d0002');
    expect(toHex(packet.targetIp)).toBe('0a4d0003');
    writeArp(request, 1, ARP_REPLY, MAC_A, A4, MAC_B, B4);
    expect(parseArp(request, 1, ARP_BYTES, packet)).toBe(true);
    expect(packet.operation).toBe(ARP_REPLY);
    expect(toHex(packet.targetMac)).toBe('020000000002');
  });

  test.each([0, 2, 4, 5, 6, 7])('a change of byte %i is refused', (at) => {
    const bytes = request.slice(1);
    bytes[at] ^= 0x20;
    expect(parseArp(bytes, 0, ARP_BYTES, new ArpPacket())).toBe(false);
  });

  test('a short packet is refused', () => {
    expect(parseArp(request, 1, ARP_BYTES - 1, new ArpPacket())).toBe(false);
  });
});

describe('neighbour discovery', () => {
  test('group addresses', () => {
    expect(IpAddress.fromBytes(solicitedNodeAddress(B6)).text).toBe('ff02::1:ffcd:ef01');
    expect(toHex(multicastMac(solicitedNodeAddress(B6)))).toBe('3333ffcdef01');
  });

  const solicitation = new Uint8Array(NDP_BYTES + 2);
  writeNeighborSolicitation(solicitation, 2, A6, MAC_A, B6);

  test('a solicitation is read back', () => {
    const packet = new NdpPacket();
    expect(parseNdp(solicitation, 2, NDP_BYTES, packet)).toBe(true);
    expect(packet.type).toBe(NEIGHBOR_SOLICITATION);
    expect(toHex(packet.sourceIp)).toBe(toHex(A6));
    expect(toHex(packet.targetIp)).toBe(toHex(B6));
    expect(packet.hasMac).toBe(true);
    expect(toHex(packet.mac)).toBe('020000000001');
    expect(toHex(solicitation.subarray(2 + 24, 2 + 40))).toBe(toHex(solicitedNodeAddress(B6)));
  });

  test('an advertisement is solicited, overrides, and is read back', () => {
    const bytes = new Uint8Array(NDP_BYTES);
    writeNeighborAdvertisement(bytes, 0, B6, MAC_B, A6);
    const packet = new NdpPacket();
    expect(parseNdp(bytes, 0, NDP_BYTES, packet)).toBe(true);
    expect(packet.type).toBe(NEIGHBOR_ADVERTISEMENT);
    expect(toHex(packet.targetIp)).toBe(toHex(B6));
    expect(toHex(packet.mac)).toBe('020000000002');
    expect(bytes[44]).toBe(0x60);
  });

  test('any flipped bit of the ICMPv6 message is refused', () => {
    for (let bit = 40 * 8; bit < NDP_BYTES * 8; bit++) {
      const bytes = solicitation.slice(2);
      bytes[bit >> 3] ^= 1 << (bit & 7);
      expect(parseNdp(bytes, 0, NDP_BYTES, new NdpPacket())).toBe(false);
    }
  });

  test.each([
    [0, 'of no length'],
    [2, 'that runs over the end'],
  ])('an option of length %i, %s, is refused although the checksum is right', (units) => {
    const bytes = solicitation.slice(2);
    const [option, checksum] = [40 + 24, 40 + 2];
    bytes[option + 1] = units;
    const old = readU16(bytes, checksum);
    writeU16(bytes, checksum, old - (units - 1));
    expect(parseNdp(bytes, 0, NDP_BYTES, new NdpPacket())).toBe(false);
    // The checksum was adjusted rightly: with the length restored, the old one is what is needed.
    bytes[option + 1] = 1;
    writeU16(bytes, checksum, old);
    expect(parseNdp(bytes, 0, NDP_BYTES, new NdpPacket())).toBe(true);
  });

  test('a packet that crossed a router, or is short, is refused', () => {
    const bytes = solicitation.slice(2);
    bytes[7] = 254;
    expect(parseNdp(bytes, 0, NDP_BYTES, new NdpPacket())).toBe(false);
    expect(parseNdp(solicitation, 2, NDP_BYTES - 1, new NdpPacket())).toBe(false);
  });
});
