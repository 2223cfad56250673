import { expect, test } from 'vitest';
import { type Crc32cImplementation, crc32c, crc32cBackend, portableCrc32c, useCrc32c } from '../../src/core/crc32c.js';
import { randomInt, SeededRandom } from '../../src/core/random.js';
import { CRC32C_RULES, CRC32C_VARIABLE, crc32cRight, offerCrc32c } from '../../src/driver/crc32/crc32c-choice.js';
import { type ImplementationFactory, ImplementationSelection } from '../../src/driver/implementation-selection.js';

const { javascript } = CRC32C_RULES.candidates;

/** The right sums, but for those that `wrong` picks, which have one bit flipped. */
function flawed(wrong: (length: number, seed: number) => boolean): Crc32cImplementation {
  return {
    name: 'flawed',
    sum: (bytes, seed = 0) => (portableCrc32c(bytes, seed) ^ (wrong(bytes.length, seed) ? 1 : 0)) >>> 0,
  };
}

type Candidates = Readonly<Record<string, ImplementationFactory<Crc32cImplementation>>>;

/** Selects among these; the one called `cheap` costs least. */
const among = (candidates: Candidates, cheap = '') =>
  new ImplementationSelection({ ...CRC32C_RULES, candidates, costOf: ({ name }) => (name === cheap ? 1 : 2) });

test('the one that costs least is taken', () => {
  const other = () => ({ ...javascript(), name: 'other' });
  expect(among({ other, javascript }, 'other').select('').name).toBe('other');
  expect(among({ other, javascript }, 'javascript').select('').name).toBe('javascript');
});

test.each<[string, Crc32cImplementation]>([
  ['in all sums', flawed(() => true)],
  ['in long ones', flawed((length) => length >= 4096)],
  ['in lengths that are no multiple of 16', flawed((length) => length % 16 !== 0)],
  ['in continued sums', flawed((_, seed) => seed !== 0)],
  ['in the highest bit of the seed', flawed((_, seed) => seed > 0x7fffffff)],
  ['in its sign', { name: 'flawed', sum: (bytes, seed) => portableCrc32c(bytes, seed) | 0 }],
])('one that is wrong %s is not taken, however quick', (_, implementation) => {
  expect(crc32cRight(javascript())).toBe(true);
  expect(crc32cRight(implementation)).toBe(false);
  const selection = among({ flawed: () => implementation, javascript }, 'flawed');
  expect(selection.select('').name).toBe('javascript');
  expect(() => selection.select('flawed')).toThrow(
    expect.objectContaining({
      code: 'ERR_ROCE_UNSUPPORTED',
      message: expect.stringContaining('it computes wrong checksums'),
    }),
  );
});

test('a name that none has is refused when it is offered, with those that there are', () => {
  expect(() => offerCrc32c('crc64')).toThrow(
    expect.objectContaining({
      code: 'ERR_ROCE_UNKNOWN_NAME',
      message: `${CRC32C_VARIABLE} is 'crc64' (it is one of isa-l, @node-rs/crc32, javascript)`,
    }),
  );
});

test('the named one is used from then on, and only for more than headers', () => {
  offerCrc32c('javascript');
  expect(crc32cBackend()).toBe('javascript');
  const lengths: number[] = [];
  useCrc32c(() => ({
    name: 'counted',
    sum: (bytes, seed) => {
      lengths.push(bytes.length);
      return portableCrc32c(bytes, seed);
    },
  }));
  for (const length of [0, 28, 64, 65, 4096]) crc32c(new Uint8Array(length));
  expect(lengths).toEqual([65, 4096]);
});

/** Undefined where the system lacks it: the tests above say what is done then. */
function had(name: string): Crc32cImplementation | undefined {
  try {
    return CRC32C_RULES.candidates[name]();
  } catch {
    return undefined;
  }
}

test.for(Object.keys(CRC32C_RULES.candidates))(
  '%s, where it can be had, gives the sums of the definition',
  (name, { skip }) => {
    const { sum } = had(name) ?? skip(`no ${name} on this system`);
    const random = new SeededRandom(7).stream(name);
    const shared = new Uint8Array(new SharedArrayBuffer(20_000));
    for (let i = 0; i < shared.length; i++) shared[i] = random.u32();
    for (const slab of [shared, Uint8Array.from(shared)]) {
      for (let n = 0; n < 50; n++) {
        const offset = randomInt(random, 0, 10_000);
        const view = slab.subarray(offset, offset + randomInt(random, 65, 9_000));
        const half = view.length >> 1;
        expect(sum(view)).toBe(byBits(view));
        expect(sum(view.subarray(half), sum(view.subarray(0, half)))).toBe(byBits(view));
      }
    }
  },
);

/** Bit by bit, as RFC 3720 has it. */
function byBits(bytes: Uint8Array): number {
  let register = 0xffffffff;
  for (const byte of bytes) {
    register ^= byte;
    for (let bit = 0; bit < 8; bit++) register = (register >>> 1) ^ (register & 1 ? 0x82f63b78 : 0);
  }
  return ~register >>> 0;
}
