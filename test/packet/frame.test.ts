import { describe, expect, test } from 'vitest';
import { fromHex, toHex, writeU16 } from '../../src/core/bytes.js';
import { IpAddress } from '../../src/packet/address.js';
import {
  ETHERTYPE_ARP,
  ETHERTYPE_IPV4,
  ETHERTYPE_IPV6,
  formatMac,
  parseMac,
  readMac,
  writeEthernet,
  writeEthernetTagged,
} from '../../src/packet/ethernet.js';
import { FRAME_REASONS, FrameInfo, parseFrame } from '../../src/packet/frame.js';
import { IP_PROTOCOL_UDP, isIpv4ChecksumGood, refreshIpv4Checksum, writeIpv4 } from '../../src/packet/ipv4.js';
import { writeIpv6 } from '../../src/packet/ipv6.js';
import { isUdpChecksumGoodV6, writeUdp, writeUdpChecksumV6 } from '../../src/packet/udp.js';

const MAC_A = parseMac('02:00:00:00:00:01');
const MAC_B = parseMac('02-00-00-00-00-0B');
const A4 = IpAddress.parse('192.0.2.1').bytes;
const B4 = IpAddress.parse('192.0.2.2').bytes;
const A6 = IpAddress.parse('2001:db8::1').bytes;
const B6 = IpAddress.parse('2001:db8::2').bytes;

const PAYLOAD_BYTES = 24;
const ETHERNET_AND_IP = 14;

function frame4(tagged = false): Uint8Array {
  const b = new Uint8Array(tagged ? 70 : 66);
  let o = tagged
    ? writeEthernetTagged(b, 0, MAC_B, MAC_A, 3, 42, ETHERTYPE_IPV4)
    : writeEthernet(b, 0, MAC_B, MAC_A, ETHERTYPE_IPV4);
  o = writeIpv4(b, o, A4, B4, IP_PROTOCOL_UDP, 0x6a, 64, 0x1234, 8 + PAYLOAD_BYTES);
  o = writeUdp(b, o, 0xc000, 4791, PAYLOAD_BYTES);
  expect(o + PAYLOAD_BYTES).toBe(b.length);
  return b;
}

function frame6(): Uint8Array {
  const b = new Uint8Array(86);
  let o = writeEthernet(b, 0, MAC_B, MAC_A, ETHERTYPE_IPV6);
  o = writeIpv6(b, o, A6, B6, IP_PROTOCOL_UDP, 0x6b, 0xabcde, 63, 8 + PAYLOAD_BYTES);
  o = writeUdp(b, o, 0xc000, 4791, PAYLOAD_BYTES);
  expect(o + PAYLOAD_BYTES).toBe(b.length);
  return b;
}

const info = new FrameInfo();
const reasonOf = (b: Uint8Array, length = b.length) => FRAME_REASONS[parseFrame(b, 0, length, info)];

describe('parseFrame reads what the writers wrote', () => {
  test('IPv4', () => {
    const b = frame4();
    expect(toHex(b.subarray(0, 42))).toBe(
      toHex(fromHex('02000000000b 020000000001 0800 456a0034123440004011a417c0000201c0000202 c00012b700200000')),
    );
    expect(reasonOf(b)).toBe('ok');
    expect({ ...info }).toEqual({
      destinationMacOffset: 0,
      sourceMacOffset: 6,
      vlanId: -1,
      pcp: 0,
      ethertype: ETHERTYPE_IPV4,
      family: 4,
      ipOffset: 14,
      ecn: 2,
      dscp: 26,
      ttl: 64,
      ipId: 0x1234,
      dontFragment: true,
      protocol: 17,
      sourceOffset: 26,
      destinationOffset: 30,
      addressBytes: 4,
      udpOffset: 34,
      sourcePort: 0xc000,
      destinationPort: 4791,
      payloadOffset: 42,
      payloadBytes: PAYLOAD_BYTES,
    });
  });

  test('IPv4 with an 802.1Q tag', () => {
    const b = frame4(true);
    expect(reasonOf(b)).toBe('ok');
    expect(info).toMatchObject({ vlanId: 42, pcp: 3, ethertype: ETHERTYPE_IPV4, ipOffset: 18, payloadOffset: 46 });
    expect(formatMac(readMac(b, info.sourceMacOffset))).toBe('02:00:00:00:00:01');
  });

  test('IPv6', () => {
    expect(reasonOf(frame6())).toBe('ok');
    expect(info).toMatchObject({
      family: 6,
      ecn: 3,
      dscp: 26,
      ttl: 63,
      ipId: 0,
      dontFragment: true,
      sourceOffset: 22,
      destinationOffset: 38,
      addressBytes: 16,
      sourcePort: 0xc000,
      destinationPort: 4791,
      payloadOffset: 62,
      payloadBytes: PAYLOAD_BYTES,
    });
  });

  test('padding behind a short packet is not payload', () => {
    const b = frame4();
    const padded = new Uint8Array(b.length + 18);
    padded.set(b);
    expect(reasonOf(padded)).toBe('ok');
    expect(info.payloadBytes).toBe(PAYLOAD_BYTES);
  });

  test('a frame without IP still says what it is', () => {
    const b = frame4();
    writeU16(b, 12, ETHERTYPE_ARP);
    expect(reasonOf(b)).toBe('not_ip');
    expect(info).toMatchObject({ ethertype: ETHERTYPE_ARP, family: 0, ipOffset: 14 });
  });
});

/** Changes the IPv4 header and makes its checksum right again. */
function edit4(change: (b: Uint8Array, ip: number) => void): Uint8Array {
  const b = frame4();
  change(b, ETHERNET_AND_IP);
  refreshIpv4Checksum(b, ETHERNET_AND_IP);
  return b;
}

describe('parseFrame refuses', () => {
  test.each<[string, Uint8Array]>([
    ['bad_ip_version', edit4((b, ip) => (b[ip] = 0x65))],
    ['ip_options', edit4((b, ip) => (b[ip] = 0x46))],
    ['bad_ip_length', edit4((b, ip) => writeU16(b, ip + 2, 53))],
    ['bad_ip_length', edit4((b, ip) => writeU16(b, ip + 2, 19))],
    ['ip_fragment', edit4((b, ip) => writeU16(b, ip + 6, 0x2000))],
    ['ip_fragment', edit4((b, ip) => writeU16(b, ip + 6, 0x0001))],
    ['not_udp', edit4((b, ip) => (b[ip + 9] = 6))],
    ['bad_udp_length', edit4((b, ip) => writeU16(b, ip + 24, 31))],
    ['bad_udp_length', edit4((b, ip) => writeU16(b, ip + 2, 27))],
    [
      'bad_udp_length',
      edit4((b, ip) => {
        writeU16(b, ip + 2, 24);
        writeU16(b, ip + 24, 4);
      }),
    ],
  ])('%s', (reason, b) => {
    expect(reasonOf(b)).toBe(reason);
  });

  test('an IPv4 header in which any bit was flipped', () => {
    for (let bit = 0; bit < 160; bit++) {
      const b = frame4();
      b[ETHERNET_AND_IP + (bit >> 3)] ^= 1 << (bit & 7);
      expect(reasonOf(b)).not.toBe('ok');
    }
  });

  test.each<[string, Uint8Array, number]>([
    ['IPv4', frame4(), 34],
    ['tagged IPv4', frame4(true), 38],
    ['IPv6', frame6(), 54],
  ])('%s cut short anywhere', (_, whole, headerBytes) => {
    for (let length = 0; length < headerBytes; length++) expect(reasonOf(whole, length)).toBe('frame_too_short');
    for (let length = headerBytes; length < whole.length; length++) {
      expect(reasonOf(whole, length)).toBe('bad_ip_length');
    }
  });

  test('half a tag', () => {
    const b = frame4(true);
    writeU16(b, 16, ETHERTYPE_ARP);
    expect(reasonOf(b, 17)).toBe('frame_too_short');
    expect(reasonOf(b, 18)).toBe('not_ip');
  });

  test('an IPv6 packet with extension headers or a wrong length', () => {
    const b = frame6();
    b[14 + 6] = 44; // fragment header
    expect(reasonOf(b)).toBe('not_udp');
    b[14 + 6] = 17;
    writeU16(b, 14 + 4, 8 + PAYLOAD_BYTES + 1);
    expect(reasonOf(b)).toBe('bad_ip_length');
    writeU16(b, 14 + 4, 8 + PAYLOAD_BYTES - 4);
    expect(reasonOf(b)).toBe('bad_udp_length');
  });
});

describe('checksums', () => {
  test('a captured IPv4 header has the checksum this code computes', () => {
    const ip = fromHex('45c2003c718c4000401191610a0011010a001201');
    expect(isIpv4ChecksumGood(ip, 0)).toBe(true);
    writeU16(ip, 10, 0);
    expect(isIpv4ChecksumGood(ip, 0)).toBe(false);
    refreshIpv4Checksum(ip, 0);
    expect(toHex(ip.subarray(10, 12))).toBe('9161');
  });

  test('UDP over IPv6: right, wrong, absent', () => {
    const b = frame6();
    b.fill(0x5a, 62);
    expect(isUdpChecksumGoodV6(b, 14, 54)).toBe(true); // absent
    writeUdpChecksumV6(b, 14, 54);
    expect(toHex(b.subarray(60, 62))).not.toBe('0000');
    expect(isUdpChecksumGoodV6(b, 14, 54)).toBe(true);
    for (const at of [22, 40, 54, 63, 85]) {
      b[at] ^= 0x10;
      expect(isUdpChecksumGoodV6(b, 14, 54)).toBe(false);
      b[at] ^= 0x10;
    }
  });

  test('a UDP sum of zero is sent as ffff, because zero means none', () => {
    const b = frame6();
    writeUdpChecksumV6(b, 14, 54);
    const checksum = (b[60] << 8) | b[61];
    // With this word in the payload the sum of everything else is the complement of zero.
    writeU16(b, 62, checksum);
    writeUdpChecksumV6(b, 14, 54);
    expect(toHex(b.subarray(60, 62))).toBe('ffff');
    expect(isUdpChecksumGoodV6(b, 14, 54)).toBe(true);
  });
});

test('MAC addresses are read strictly', () => {
  expect(formatMac(MAC_B)).toBe('02:00:00:00:00:0b');
  for (const text of ['', '02:00:00:00:00', '02:00:00:00:00:0g', '2:0:0:0:0:1']) expect(() => parseMac(text)).toThrow();
});
