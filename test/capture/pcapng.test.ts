import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CaptureReader } from '../../src/port/capture/capture-reader.js';
import type { CapturedPacket } from '../../src/port/capture/captured-packet.js';
import { LINKTYPE_ETHERNET, LINKTYPE_RAW } from '../../src/port/capture/pcapng-blocks.js';
import { PcapngFile } from '../../src/port/capture/pcapng-file.js';

const T0 = 1_790_000_000_123_456_789n;

let directory: string;
let path: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'rocev2-capture-'));
  path = join(directory, 'out.pcapng');
});
afterEach(() => rmSync(directory, { recursive: true }));

function read(file: Uint8Array): { packets: CapturedPacket[]; reader: CaptureReader } {
  const reader = new CaptureReader(file);
  return { packets: [...reader], reader };
}

async function writeOne(comment?: string): Promise<Uint8Array> {
  const file = await PcapngFile.create(path, [{ name: 'roce0', linkType: LINKTYPE_RAW }]);
  file.writePacket(0, T0, Uint8Array.of(1, 2, 3, 4, 5), comment);
  await file.close();
  return readFileSync(path);
}

describe('a capture we write', () => {
  it('reads back identically, whatever the packets', async () => {
    const packet = fc.record({
      bytes: fc.uint8Array({ minLength: 0, maxLength: 300 }),
      interfaceId: fc.integer({ min: 0, max: 1 }),
      timestampNs: fc.bigInt({ min: 0n, max: 2n ** 63n }),
      comment: fc.option(fc.string({ unit: 'grapheme' }), { nil: undefined }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(packet, { maxLength: 20 }), async (written) => {
        const file = await PcapngFile.create(path, [
          { name: 'wire', linkType: LINKTYPE_ETHERNET },
          { name: 'roce0', linkType: LINKTYPE_RAW },
        ]);
        for (const p of written) expect(file.writePacket(p.interfaceId, p.timestampNs, p.bytes, p.comment)).toBe(true);
        await file.close();
        const { packets, reader } = read(readFileSync(path));
        expect(reader.damage).toBeUndefined();
        expect(packets).toEqual(
          written.map((p) => ({
            ...p,
            bytes: p.bytes,
            linkType: p.interfaceId === 0 ? LINKTYPE_ETHERNET : LINKTYPE_RAW,
            originalLength: p.bytes.length,
          })),
        );
      }),
      { numRuns: 50 },
    );
  });

  it('keeps order when the buffers swap many times', async () => {
    const file = await PcapngFile.create(path, [{ name: 'roce0', linkType: LINKTYPE_RAW }], 4096);
    const packet = new Uint8Array(100);
    for (let i = 0; i < 500; i++) {
      packet.fill(i & 0xff);
      while (!file.writePacket(0, T0 + BigInt(i), packet)) await new Promise(setImmediate);
    }
    await file.close();
    const { packets } = read(readFileSync(path));
    expect(packets.map((p) => p.timestampNs - T0)).toEqual(Array.from({ length: 500 }, (_, i) => BigInt(i)));
    expect(packets.every((p, i) => p.bytes.every((byte) => byte === (i & 0xff)))).toBe(true);
  });

  it('leaves out and counts what the disk cannot take in time', async () => {
    const file = await PcapngFile.create(path, [{ name: 'roce0', linkType: LINKTYPE_RAW }], 1024);
    const results = Array.from({ length: 50 }, () => file.writePacket(0, T0, new Uint8Array(100)));
    const kept = results.filter(Boolean).length;
    expect(kept).toBeGreaterThan(0);
    expect(kept).toBeLessThan(50);
    expect(file.dropped).toBe(50 - kept);
    await file.close();
    expect(read(readFileSync(path)).packets).toHaveLength(kept);
  });

  it('cannot be opened where there is no directory, and says which file', async () => {
    await expect(PcapngFile.create(join(directory, 'none', 'x.pcapng'), [])).rejects.toThrow(
      /cannot write capture .*none.x\.pcapng: there is no such folder/,
    );
  });
});

describe('damage', () => {
  it('a file cut anywhere yields what came before and says where it stopped', async () => {
    const whole = await writeOne('a comment');
    for (let cut = 4; cut < whole.length; cut++) {
      const { packets, reader } = read(whole.subarray(0, cut));
      expect(packets.length).toBeLessThanOrEqual(1);
      // A cut exactly between two blocks cannot be told from a whole file.
      if (reader.damage === undefined) expect(cut % 4).toBe(0);
      else expect(reader.damage.offset).toBeLessThan(cut);
    }
  });

  it('a flipped byte never throws and never delivers bytes from outside the file', async () => {
    const whole = await writeOne('a comment');
    for (let at = 4; at < whole.length; at++) {
      for (const flip of [0x01, 0x80, 0xff]) {
        const file = Uint8Array.from(whole);
        file[at] ^= flip;
        for (const packet of read(file).packets) expect(packet.bytes.length).toBeLessThanOrEqual(file.length);
      }
    }
  });

  it.each([
    [new Uint8Array(0), /the file is empty/],
    [new TextEncoder().encode('hello'), /not a pcapng or pcap file: it begins with 68 65 6c 6c/],
    [Uint8Array.of(0x0a), /not a pcapng or pcap file: it begins with 0a/],
  ])('what is no capture is refused with what was found instead', (file, message) => {
    expect(() => new CaptureReader(file)).toThrow(message);
  });

  it('an unknown block is skipped', async () => {
    const whole = await writeOne();
    const unknown = Uint8Array.of(0xad, 0x0b, 0, 0, 16, 0, 0, 0, 9, 9, 9, 9, 16, 0, 0, 0);
    const { packets, reader } = read(Buffer.concat([whole, unknown, whole]));
    expect(packets).toHaveLength(2);
    expect(reader.damage).toBeUndefined();
  });
});

describe('files of other programs', () => {
  it.each([true, false])('pcapng with the obsolete packet block, little-endian: %s', (little) => {
    const bytes = new Uint8Array(28 + 20 + 36);
    const view = new DataView(bytes.buffer);
    const u32 = (at: number, ...values: number[]) => {
      for (const [i, value] of values.entries()) view.setUint32(at + 4 * i, value, little);
    };
    u32(0, 0x0a0d0d0a, 28, 0x1a2b3c4d, little ? 1 : 0x10000, 0xffffffff, 0xffffffff, 28);
    u32(28, 1, 20);
    view.setUint16(36, LINKTYPE_RAW, little);
    u32(44, 20);
    u32(48, 2, 36);
    view.setUint16(58, 3, little); // drops
    u32(60, 0, 5, 2, 99);
    bytes.set([7, 8], 76);
    u32(80, 36);
    const { packets, reader } = read(bytes);
    expect(reader.damage).toBeUndefined();
    expect(packets).toMatchObject([
      { interfaceId: 0, timestampNs: 5000n, linkType: LINKTYPE_RAW, bytes: Uint8Array.of(7, 8), originalLength: 99 },
    ]);
  });

  it.each([
    ['little-endian', true],
    ['big-endian', false],
  ])('pcapng, %s, microseconds by default, with a time offset and a simple packet', (_, little) => {
    const bytes = new Uint8Array(28 + 32 + 36 + 20);
    const view = new DataView(bytes.buffer);
    const u32 = (at: number, ...values: number[]) => {
      for (const [i, value] of values.entries()) view.setUint32(at + 4 * i, value, little);
    };
    u32(0, 0x0a0d0d0a, 28, 0x1a2b3c4d, little ? 1 : 0x10000, 0xffffffff, 0xffffffff, 28);
    u32(28, 1, 32);
    view.setUint16(36, LINKTYPE_RAW, little);
    view.setUint16(44, 14, little); // if_tsoffset
    view.setUint16(46, 8, little);
    view.setBigInt64(48, 100n, little);
    u32(56, 32);
    u32(60, 6, 36, 0, 0, 2_000_001, 2, 99);
    bytes.set([7, 8], 88);
    u32(92, 36);
    u32(96, 3, 20, 3);
    bytes.set([4, 5, 6], 108);
    u32(112, 20);
    const { packets, reader } = read(bytes);
    expect(reader.damage).toBeUndefined();
    expect(packets).toMatchObject([
      { timestampNs: 102_000_001_000n, linkType: LINKTYPE_RAW, bytes: Uint8Array.of(7, 8), originalLength: 99 },
      { timestampNs: 0n, bytes: Uint8Array.of(4, 5, 6), originalLength: 3 },
    ]);
  });

  it.each([
    ['big-endian us', 0xa1b2c3d4, false, 1000n],
    ['little-endian us', 0xa1b2c3d4, true, 1000n],
    ['big-endian ns', 0xa1b23c4d, false, 1n],
    ['little-endian ns', 0xa1b23c4d, true, 1n],
  ])('classic pcap, %s', (_, magic, little, nsPerTick) => {
    const bytes = new Uint8Array(24 + 16 + 3);
    const view = new DataView(bytes.buffer);
    view.setUint32(0, magic, little);
    view.setUint32(20, LINKTYPE_ETHERNET, little);
    for (const [i, value] of [5, 17, 3, 60].entries()) view.setUint32(24 + 4 * i, value, little);
    bytes.set([1, 2, 3], 40);
    const { packets, reader } = read(bytes);
    expect(reader.damage).toBeUndefined();
    expect(packets).toMatchObject([
      { timestampNs: 5_000_000_000n + 17n * nsPerTick, linkType: LINKTYPE_ETHERNET, originalLength: 60 },
    ]);
    const cut = read(bytes.subarray(0, 42));
    expect(cut.packets).toHaveLength(0);
    expect(cut.reader.damage).toEqual({ offset: 24, reason: 'the file ends inside a packet' });
  });
});
