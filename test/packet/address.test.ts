import { isIPv6 } from 'node:net';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { IpAddress } from '../../src/packet/address.js';

describe('IpAddress', () => {
  test.each([
    ['127.0.0.1', '127.0.0.1', '00000000000000000000ffff7f000001'],
    ['::', '::', '00000000000000000000000000000000'],
    ['::1', '::1', '00000000000000000000000000000001'],
    ['FD77:0:0:0:0:0:0:2', 'fd77::2', 'fd770000000000000000000000000002'],
    ['2001:db8:0:1:0:0:0:1', '2001:db8:0:1::1', '20010db8000000010000000000000001'],
    ['1:0:2:3:4:5:6:7', '1:0:2:3:4:5:6:7', '00010000000200030004000500060007'],
    ['::ffff:10.0.0.1', '10.0.0.1', '00000000000000000000ffff0a000001'],
  ])('%s is written %s', (text, canonical, gid) => {
    const address = IpAddress.parse(text);
    expect(address.text).toBe(canonical);
    expect(address.gidHex).toBe(gid);
    expect(address.equals(IpAddress.parse(canonical))).toBe(true);
  });

  test.each([
    '',
    '1.2.3',
    '1.2.3.256',
    '01.2.3.4',
    'localhost',
    ':::',
    '1::2::3',
    '1:2:3:4:5:6:7',
    '::12345',
    '1:2:3:4:5:6:7:8:9',
    '::1.2.3',
    undefined,
  ])('%j is refused', (text) => {
    expect(() => IpAddress.parse(text as string)).toThrow(/is not an IP address/);
  });

  test('any 4 or 16 bytes survive the way through text', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(4, 16).chain((n) => fc.uint8Array({ minLength: n, maxLength: n })),
        (bytes) => {
          const address = IpAddress.fromBytes(bytes);
          expect(IpAddress.parse(address.text).equals(address)).toBe(true);
          if (address.family === 6) expect(isIPv6(address.text)).toBe(true);
        },
      ),
    );
    expect(() => IpAddress.fromBytes(new Uint8Array(5))).toThrow(/4 or 16 bytes/);
  });

  test('addresses that differ are not equal', () => {
    expect(IpAddress.parse('127.0.0.1').equals(IpAddress.parse('127.0.0.2'))).toBe(false);
    expect(IpAddress.parse('127.0.0.1').equals(IpAddress.parse('::1'))).toBe(false);
  });

  test.each([
    ['127.0.0.1', true],
    ['10.0.0.255', true],
    ['fe80::1', true],
    ['0.0.0.0', false],
    ['0.1.2.3', false],
    ['224.0.0.1', false],
    ['240.0.0.1', false],
    ['255.255.255.255', false],
    ['::ffff:224.0.0.1', false],
    ['::', false],
    ['ff02::1', false],
  ])('%s can be one host: %s', (text, isUnicast) => {
    expect(IpAddress.parse(text).isUnicast).toBe(isUnicast);
  });
});
