import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ECN_CE, readEcn, writeCe, writeTrafficClass } from '../../src/packet/ecn.js';
import { isIpv4ChecksumGood, refreshIpv4Checksum, writeIpv4 } from '../../src/packet/ipv4.js';
import { writeIpv6 } from '../../src/packet/ipv6.js';

const v4 = (bytes: Uint8Array, tos: number, id: number): Uint8Array => {
  const header = new Uint8Array(30);
  writeIpv4(header, 5, bytes.subarray(0, 4), bytes.subarray(4, 8), 17, tos, 64, id, 100);
  return header;
};

describe('marking Congestion Experienced', () => {
  it('leaves the IPv4 checksum what a new computation would make of it', () => {
    const addresses = fc.uint8Array({ minLength: 8, maxLength: 8 });
    fc.assert(
      fc.property(addresses, fc.nat(255), fc.nat(65535), (bytes, tos, id) => {
        const marked = v4(bytes, tos, id);
        writeCe(marked, 5);
        expect([marked[6], readEcn(marked, 5)]).toEqual([tos | ECN_CE, ECN_CE]);
        expect(isIpv4ChecksumGood(marked, 5)).toBe(true);
        const again = marked.slice();
        refreshIpv4Checksum(again, 5);
        expect(marked).toEqual(again);
      }),
      { numRuns: 2000 },
    );
  });

  it('is right for every checksum there is', () => {
    const addresses = Uint8Array.of(10, 0, 0, 1, 10, 0, 0, 2);
    for (let id = 0; id < 65_536; id++) {
      const marked = v4(addresses, 2, id);
      writeCe(marked, 5);
      if (!isIpv4ChecksumGood(marked, 5)) throw new Error(`identification ${id}`);
    }
  });

  it('changes nothing else in either family', () => {
    const before = v4(Uint8Array.of(10, 0, 0, 1, 10, 0, 0, 2), 0x6a, 7);
    const after = before.slice();
    writeCe(after, 5);
    const changed = [...after.keys()].filter((i) => after[i] !== before[i]);
    expect(changed.every((i) => [6, 15, 16].includes(i))).toBe(true);

    const six = new Uint8Array(40);
    writeIpv6(six, 0, new Uint8Array(16), new Uint8Array(16), 17, 0x6a, 0xabcde, 64, 100);
    const sixBefore = six.slice();
    expect(readEcn(six, 0)).toBe(2);
    writeCe(six, 0);
    expect(readEcn(six, 0)).toBe(3);
    expect(six[1]).toBe(sixBefore[1] | 0x30);
    expect([...six.keys()].filter((i) => six[i] !== sixBefore[i])).toEqual([1]);
  });
});

describe('writing a traffic class', () => {
  it('leaves the IPv4 checksum what a new computation would make of it', () => {
    const addresses = fc.uint8Array({ minLength: 8, maxLength: 8 });
    fc.assert(
      fc.property(addresses, fc.nat(255), fc.nat(255), fc.nat(65535), (bytes, tos, written, id) => {
        const header = v4(bytes, tos, id);
        writeTrafficClass(header, 5, written);
        expect(header[6]).toBe(written);
        const again = header.slice();
        refreshIpv4Checksum(again, 5);
        expect(isIpv4ChecksumGood(header, 5)).toBe(true);
        // Ones' complement has two zeros (RFC 1624 section 3).
        expect(header.with(15, 0).with(16, 0)).toEqual(again.with(15, 0).with(16, 0));
      }),
      { numRuns: 2000 },
    );
  });

  it('keeps version and flow label of IPv6', () => {
    const header = new Uint8Array(40);
    const expected = new Uint8Array(40);
    writeIpv6(header, 0, new Uint8Array(16), new Uint8Array(16), 17, 0x6a, 0xabcde, 64, 100);
    writeIpv6(expected, 0, new Uint8Array(16), new Uint8Array(16), 17, 0xb9, 0xabcde, 64, 100);
    writeTrafficClass(header, 0, 0xb9);
    expect(header).toEqual(expected);
  });
});
