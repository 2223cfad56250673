import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  formatBytes,
  formatNs,
  formatRate,
  parseCount,
  parseDurationNs,
  parseRateBps,
  parseSizeBytes,
} from '../../src/core/units.js';

describe('sizes', () => {
  it.each([
    ['4096', 4096],
    ['64KiB', 65536],
    ['4MiB', 4 * 2 ** 20],
    ['1GiB', 2 ** 30],
    ['64kB', 64_000],
    ['1.5 MB', 1_500_000],
    ['0', 0],
  ])('%s is %i bytes', (text, bytes) => expect(parseSizeBytes(text)).toBe(bytes));

  it.each(['', 'KiB', '-1', '4 parsecs', '1e6', '0x10', '64K', '9007199254740992', '1 2'])(
    "'%s' is refused by name and with an example",
    (text) => {
      expect(() => parseSizeBytes(text)).toThrow(
        expect.objectContaining({ code: 'ERR_ROCE_MALFORMED', message: expect.stringContaining(`'${text}'`) }),
      );
      expect(() => parseSizeBytes(text)).toThrow(/for example 4096, 64KiB/);
    },
  );

  it('prints whole numbers of a unit exactly', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1023 }), fc.constantFrom(1, 2 ** 10, 2 ** 20, 2 ** 30), (count, unit) => {
        expect(parseSizeBytes(formatBytes(count * unit))).toBe(count * unit);
      }),
    );
  });

  it('prints anything else within half a per cent', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 2 ** 49 }), (bytes) => {
        expect(Math.abs(parseSizeBytes(formatBytes(bytes)) / bytes - 1)).toBeLessThanOrEqual(0.005);
      }),
    );
  });
});

describe('rates', () => {
  it.each([
    ['25Gbps', 25e9],
    ['800Mbps', 800e6],
    ['2.5Gb/s', 2.5e9],
    ['9600bps', 9600],
  ])('%s is %f bits/s', (text, bps) => expect(parseRateBps(text)).toBe(bps));

  it.each(['25', '25G', 'fast', '25GBytes'])("'%s' is refused: the unit decides the meaning", (text) => {
    expect(() => parseRateBps(text)).toThrow(/is not a rate \(write for example 25Gbps/);
  });

  it('prints three significant digits that read back as the same rate', () => {
    expect(formatRate(25e9)).toBe('25.0 Gb/s');
    expect(formatRate(800e6)).toBe('800 Mb/s');
    expect(formatRate(999_700_000)).toBe('1.00 Gb/s');
    expect(formatRate(0)).toBe('0 b/s');
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1e14 }), (bps) => {
        expect(Math.abs(parseRateBps(formatRate(bps)) / bps - 1)).toBeLessThanOrEqual(0.005);
      }),
    );
  });
});

describe('times', () => {
  it.each([
    ['500ns', 500],
    ['67us', 67_000],
    ['67µs', 67_000],
    ['5ms', 5e6],
    ['2s', 2e9],
    ['0.5s', 5e8],
    ['10min', 600e9],
    ['8h', 28_800e9],
    ['7d', 604_800e9],
  ])('%s is %i ns', (text, ns) => expect(parseDurationNs(text)).toBe(ns));

  it.each(['5', '5 weeks', 's', 'soon'])("'%s' is refused", (text) => {
    expect(() => parseDurationNs(text)).toThrow(/is not a time \(write for example 67us/);
  });

  it('prints three significant digits that read back as the same time', () => {
    expect(formatNs(500)).toBe('500 ns');
    expect(formatNs(67_200)).toBe('67.2 us');
    expect(formatNs(999_999)).toBe('1.00 ms');
    expect(formatNs(90e9)).toBe('90.0 s');
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1e15 }), (ns) => {
        expect(Math.abs(parseDurationNs(formatNs(ns)) / ns - 1)).toBeLessThanOrEqual(0.005);
      }),
    );
  });
});

describe('counts', () => {
  it('reads decimal and hex and keeps to the range', () => {
    expect(parseCount('17')).toBe(17);
    expect(parseCount('0x11')).toBe(17);
    expect(parseCount('1', 1, 5)).toBe(1);
    expect(() => parseCount('6', 1, 5)).toThrow("'6' is not a whole number from 1 to 5");
    for (const text of ['-1', '1.5', '', 'ten', '1e3']) expect(() => parseCount(text)).toThrow(/not a whole number/);
  });
});
