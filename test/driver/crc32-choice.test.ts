import { expect, test } from 'vitest';
import { crc32Range, javaScriptCrc32 } from '../../src/core/crc32.js';
import { type Crc32Implementation, zlibCrc32 } from '../../src/core/node-crc32.js';
import { randomInt, SeededRandom } from '../../src/core/random.js';
import { CRC32_RULES, CRC32_VARIABLE } from '../../src/driver/crc32/crc32-choice.js';
import { sumsRight } from '../../src/driver/crc32/crc32-self-test.js';
import { nativeCrc32 } from '../../src/driver/crc32/native-sum.js';
import { type ImplementationFactory, ImplementationSelection } from '../../src/driver/implementation-selection.js';
import { naiveCrc32 } from '../support/naive-codec.js';

const right = javaScriptCrc32();

/** The right sums, but for those that `wrong` picks, which have one bit flipped. */
function flawed(name: string, wrong: (length: number, offset: number, seed: number) => boolean): Crc32Implementation {
  const sumAt: Crc32Implementation['sumAt'] = (bytes, offset, length, seed) =>
    (crc32Range(bytes, offset, length, seed) ^ (wrong(length, offset, seed) ? 1 : 0)) >>> 0;
  return { name, sumAt, sum: (bytes, seed) => sumAt(bytes, 0, bytes.length, seed) };
}

const { lastResort: _, ...rules } = CRC32_RULES;
type Candidates = Readonly<Record<string, ImplementationFactory<Crc32Implementation>>>;

/** Selects among these; the one called `cheap` costs least. */
const among = (candidates: Candidates, cheap = '') =>
  new ImplementationSelection({ ...rules, candidates, costOf: ({ name }) => (name === cheap ? 1 : 2) });

test('the one that costs least is taken', () => {
  const candidates = { zlib: zlibCrc32, javascript: javaScriptCrc32 };
  expect(among(candidates, 'zlib').select('').name).toBe('zlib');
  expect(among(candidates, 'javascript').select('').name).toBe('javascript');
});

test.each<[string, Crc32Implementation]>([
  ['in all sums', flawed('flawed', () => true)],
  ['in one length', flawed('flawed', (length) => length === 777)],
  ['in long ones', flawed('flawed', (length) => length > 4096)],
  ['in lengths that are no multiple of 16', flawed('flawed', (length) => length % 16 !== 0)],
  ['at odd places', flawed('flawed', (_, offset) => offset % 2 === 1)],
  ['in continued sums', flawed('flawed', (_length, _offset, seed) => seed !== 0)],
  ['in the highest bit of the seed', flawed('flawed', (_length, _offset, seed) => seed > 0x7fffffff)],
  ['in its sign', { ...right, name: 'flawed', sum: (bytes, seed) => right.sum(bytes, seed) | 0 }],
  ['in the sign of the seed', flawed('flawed', (_length, _offset, seed) => seed < 0)],
])('one that is wrong %s is not taken, however quick', (_, implementation) => {
  expect(sumsRight(right)).toBe(true);
  expect(sumsRight(implementation)).toBe(false);
  const selection = among({ flawed: () => implementation, javascript: javaScriptCrc32 }, 'flawed');
  expect(selection.select('').name).toBe('javascript');
  expect(() => selection.select('flawed')).toThrow(
    expect.objectContaining({
      code: 'ERR_ROCE_UNSUPPORTED',
      message: expect.stringContaining('it computes wrong checksums'),
    }),
  );
});

test('one that is missing is not taken; asked for by name it is refused with the reason', () => {
  const missing = () =>
    nativeCrc32({ name: 'missing', library: 'librocev2-has-no-such-library.so.0', symbol: 'crc32_gzip_refl' });
  expect(among({ missing, javascript: javaScriptCrc32 }, 'missing').select('').name).toBe('javascript');
  expect(() => among({ missing, zlib: zlibCrc32 }).select('missing')).toThrow(
    expect.objectContaining({
      code: 'ERR_ROCE_UNSUPPORTED',
      message: expect.stringMatching(/^ROCEV2_CRC32 asks for missing: \S/),
      hint: expect.stringContaining('missing, zlib'),
    }),
  );
  expect(() => new ImplementationSelection(CRC32_RULES).select('crc64')).toThrow(
    expect.objectContaining({
      code: 'ERR_ROCE_UNKNOWN_NAME',
      message: `${CRC32_VARIABLE} is 'crc64' (it is one of libdeflate, isa-l, @node-rs/crc32, zlib, javascript)`,
    }),
  );
  expect(() => among({ missing }).select('')).toThrow(expect.objectContaining({ code: 'ERR_ROCE_UNSUPPORTED' }));
});

/** An implementation of the list, or undefined where the system lacks it: the tests above say what is done then. */
function had(name: string): Crc32Implementation | undefined {
  try {
    return CRC32_RULES.candidates[name]();
  } catch {
    return undefined;
  }
}

test.for(Object.keys(CRC32_RULES.candidates))(
  '%s, where it can be had, agrees with an independent implementation',
  (name, { skip }) => {
    const implementation = had(name) ?? skip(`no ${name} on this system`);
    expect(sumsRight(implementation)).toBe(true);
    const random = new SeededRandom(7).stream(name);
    const slab = Uint8Array.from({ length: 20_000 }, () => random.u32());
    for (let n = 0; n < 50; n++) {
      const offset = randomInt(random, 0, 10_000);
      const length = randomInt(random, 1, 9_000);
      const view = slab.subarray(offset, offset + length);
      const expected = naiveCrc32(view);
      const half = length >> 1;
      expect(implementation.sum(view, 0)).toBe(expected);
      expect(implementation.sumAt(slab, offset, length, 0) >>> 0).toBe(expected);
      const first = implementation.sum(view.subarray(0, half), 0);
      expect(implementation.sum(view.subarray(half), first)).toBe(expected);
      if (half === 0) continue;
      expect(implementation.sumAt(slab, offset + half, length - half, first) >>> 0).toBe(expected);
      expect(implementation.sumAt(slab, offset + half, length - half, first | 0) >>> 0).toBe(expected);
    }
  },
);

test('a native sum reads nothing outside its array, nor what an array has given away', ({ skip }) => {
  const native = had('libdeflate') ?? had('isa-l') ?? skip('no such library on this system');
  const bytes = new Uint8Array(1024);
  expect(native.sumAt(bytes, 0, 1024, 0) >>> 0).toBe(crc32Range(bytes, 0, 1024, 0));
  expect(() => native.sumAt(bytes, 1, 1024, 0)).toThrow(RangeError);
  expect(() => native.sumAt(bytes, -1, 1024, 0)).toThrow(RangeError);
  structuredClone(bytes.buffer, { transfer: [bytes.buffer] });
  expect(() => native.sumAt(bytes, 0, 1024, 0)).toThrow(RangeError);
});
