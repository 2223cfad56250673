/** The hello of the connection exchange: what a peer may say, and how the rest is refused. */

import { describe, expect, it } from 'vitest';
import { parseHello, parseRefusal } from '../../src/cm/hello.js';
import { helloOf } from '../attack/toolkit/hostile-connections.js';

const ADDRESS = '127.0.1.9';
const said = (claims: Record<string, unknown> = {}): unknown => JSON.parse(helloOf(ADDRESS, claims));

describe('a hello', () => {
  it('is read with what older peers leave out', () => {
    expect(parseHello(said())).toMatchObject({
      transport: 'RC',
      qpn: 77,
      mtu: 1024,
      recoveryParameters: {},
      sourcePort: undefined,
      memoryDomain: undefined,
      region: undefined,
      messageBytesMax: undefined,
    });
    const full = said({
      sourcePort: 'flow',
      messageBytesMax: 0,
      region: { addr: '0x7f00', rkey: 0xffffffff, length: 0 },
    });
    expect(parseHello(full)).toMatchObject({
      sourcePort: 'flow',
      messageBytesMax: 0,
      region: { addr: 0x7f00n, length: 0 },
    });
    expect(parseHello({ ...(said() as object), addedLater: [1] })).toMatchObject({ qpn: 77 });
  });

  it.each([
    ['rocev2', 2, '1'],
    ['transport', 'XRC', 'one of RC, UC, UD'],
    ['gid', 'ff'.repeat(16), 'the address of a host'],
    ['gid', '7f000001', '32 hexadecimal digits'],
    ['udpPort', 0, 'a whole number from 1 to 65535'],
    ['sourcePort', 'any', 'a whole number from 0 to 65535'],
    ['qpn', 1, 'a whole number from 2 to 16777214'],
    ['qpn', '77', 'a whole number from 2 to 16777214'],
    ['psn', 2 ** 24, 'a whole number from 0 to 16777215'],
    ['psn', 0.5, 'a whole number from 0 to 16777215'],
    ['psn', undefined, 'a whole number from 0 to 16777215'],
    ['mtu', 1500, 'one of 256, 512, 1024, 2048, 4096'],
    ['recovery', null, 'a text'],
    ['recoveryParameters', [], 'an object'],
    ['memoryDomain', true, '32 hexadecimal digits'],
    ['receiveBudgetPackets', 1, 'a whole number from 2 to 2147483647'],
    ['maxDestRdAtomic', 129, 'a whole number from 0 to 128'],
    ['messageBytesMax', 2 ** 31 + 1, 'a whole number from 0 to 2147483648'],
    ['purpose', 'x', 'an object'],
  ])('with %s %j is refused: it must be %s', (field, value, what) =>
    expect(parseHello(said({ [field]: value }))).toBe(`the peer's ${field} must be ${what}`),
  );

  it.each([
    [{ addr: 'x', rkey: 1, length: 1 }, 'region.addr must be 0x and up to 16 hexadecimal digits'],
    [{ addr: '0x1', rkey: 2 ** 32, length: 1 }, 'region.rkey must be a whole number from 0 to 4294967295'],
    [{ addr: '0x1', rkey: 1, length: -1 }, 'region.length must be a whole number from 0 to 9007199254740991'],
    [null, 'region must be an object'],
  ])('with the region %j is refused: its %s', (region, what) =>
    expect(parseHello(said({ region }))).toBe(`the peer's ${what}`),
  );

  it('that is no object, or names parameters that terminals obey, is refused in printable words', () => {
    expect(parseHello([])).toBe("the peer's message must be an object");
    const refusal = parseHello(said({ recoveryParameters: { '\u001b[2J': 'x' } }));
    expect(refusal).toBe("the peer's recoveryParameters.\ufffd[2J must be a number");
  });
});

describe('a refusal', () => {
  it('has words, and may ask to come again', () => {
    expect(parseRefusal({ refused: 'no' })).toEqual({ refused: 'no', busy: false });
    expect(parseRefusal({ refused: 'full', busy: true })).toEqual({ refused: 'full', busy: true });
  });

  it.each([[said()], [null], ['refused'], [{ refused: 1 }], [{ refused: 'no', busy: 1 }]])('is not %j', (message) =>
    expect(parseRefusal(message)).toBeUndefined(),
  );
});
