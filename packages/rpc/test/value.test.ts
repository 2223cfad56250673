import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import { decodeValue, encodeValue } from '../src/value.js';

const MANY = 65_536;
const decode = (body: Buffer) => decodeValue(body, MANY).value;
const there = (value: unknown) => decode(Buffer.concat(encodeValue(value)));

describe('values of the RPC', () => {
  it('come back as they went: JSON, bytes anywhere in it, strings of any kind', () => {
    const leaf = fc.oneof(
      fc.string(),
      fc.string().map((text) => `\0${text}`),
      fc.integer(),
      fc.boolean(),
      fc.constant(null),
      fc.uint8Array({ maxLength: 20 }).map((bytes) => Buffer.from(bytes)),
    );
    const value = fc.letrec((tie) => ({
      any: fc.oneof(
        { depthSize: 'small' },
        leaf,
        fc.array(tie('any')),
        fc.dictionary(
          fc.string().filter((key) => key !== '__proto__'),
          tie('any'),
        ),
      ),
    })).any;
    fc.assert(
      fc.property(value, (v) => {
        expect(there(v)).toEqual(v);
        const byJson = { toJSON: () => v }; // JSON.stringify with a function has to do this one.
        expect(Buffer.concat(encodeValue(byJson)).equals(Buffer.concat(encodeValue(v)))).toBe(true);
      }),
      { numRuns: 200 },
    );
  });

  it('leave byte arrays as they are: JSON of a Buffer is an array of numbers, which takes a hundred times as long as its bytes', () => {
    const toJson = vi.spyOn(Buffer.prototype, 'toJSON');
    const bytes = Buffer.alloc(5, 7);
    const made = { toJSON: () => bytes };
    for (const value of [bytes, { bytes, n: 1 }, [bytes, [bytes]], { deep: { bytes } }, { made }]) {
      expect(encodeValue(value).at(-1)).toBe(bytes);
    }
    expect(there({ deep: [{ bytes }], made })).toEqual({ deep: [{ bytes }], made: bytes });
    expect(toJson).not.toHaveBeenCalled();
    toJson.mockRestore();
  });

  it('whatever bytes a stranger sends are a value or ERR_ROCE_MALFORMED', () => {
    const good = Buffer.concat(encodeValue({ a: [Buffer.from('x'), '\0'], b: 'text' }));
    const cut = fc.nat(good.length).map((end) => good.subarray(0, end));
    const changed = fc.tuple(fc.nat(good.length - 1), fc.nat(255)).map(([at, to]) => {
      const bytes = Buffer.from(good);
      bytes[at] = to;
      return bytes;
    });
    const any = fc.uint8Array({ maxLength: 64 }).map((bytes) => Buffer.from(bytes));
    fc.assert(
      fc.property(fc.oneof(cut, changed, any), (bytes) => {
        try {
          decode(bytes);
        } catch (error) {
          expect(error).toMatchObject({ code: 'ERR_ROCE_MALFORMED' });
        }
      }),
      { numRuns: 2000 },
    );
    const deep = Buffer.from(`${'['.repeat(100_000)}${']'.repeat(100_000)}`);
    const head = Buffer.alloc(8);
    head.writeUInt32LE(deep.length, 0);
    expect(() => decode(Buffer.concat([head, deep]))).toThrow(/without valid JSON/);
    expect((there(JSON.parse('{"__proto__":{"x":1}}')) as { x?: number }).x).toBeUndefined();
    expect(() => encodeValue({ n: 1n })).toThrow(/bigint/);
    const made = { at: new Date(0), none: undefined, list: [undefined, Number.NaN], of: new Map([[1, 2]]) };
    expect(there(made)).toEqual({ at: '1970-01-01T00:00:00.000Z', list: [null, null], of: {} });
    const proto = JSON.parse('{"a":{"__proto__":{"x":1}}}');
    expect(JSON.stringify(there(proto))).toBe(JSON.stringify(proto));
  });
});
