import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CaptureCopy } from '../../src/port/capture/capture-copy.js';
import { CaptureReader, parserOf } from '../../src/port/capture/capture-reader.js';
import { CaptureStream } from '../../src/port/capture/capture-stream.js';
import type { CapturedPacket } from '../../src/port/capture/captured-packet.js';
import { repetitions } from '../support/repetitions.js';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'rocev2-stream-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

const GOLDEN = 'test/golden/nvmeof-rdma-v4.pcapng';

/** Packets with bytes of their own. */
const kept = (packet: CapturedPacket) => ({ ...packet, bytes: Uint8Array.from(packet.bytes) });

async function streamed(path: string) {
  const stream = await CaptureStream.open(path);
  const packets: CapturedPacket[] = [];
  for await (const chunk of stream.chunks()) for (const packet of chunk) packets.push(kept(packet));
  return { packets, damage: stream.damage };
}

/** A classic pcap with packets of these lengths. */
function pcap(lengths: readonly number[]): Buffer {
  const header = Buffer.alloc(24);
  header.writeUInt32LE(0xa1b23c4d, 0);
  header.writeUInt32LE(1, 20);
  const records = lengths.map((length, i) => {
    const record = Buffer.alloc(16 + length, i);
    record.writeUInt32LE(i, 0);
    record.writeUInt32LE(7, 4);
    record.writeUInt32LE(length, 8);
    record.writeUInt32LE(length + 1, 12);
    return record;
  });
  return Buffer.concat([header, ...records]);
}

/** A pcapng block of a type that nobody knows. */
function unknownBlock(length: number): Buffer {
  const block = Buffer.alloc(length);
  block.writeUInt32LE(0x0bad_0bad, 0);
  block.writeUInt32LE(length, 4);
  block.writeUInt32LE(length, length - 4);
  return block;
}

function written(name: string, bytes: Uint8Array): string {
  const path = join(folder, name);
  writeFileSync(path, bytes);
  return path;
}

describe('a capture that is read a chunk at a time', () => {
  it('has the packets of the file in memory', async () => {
    const expected = [...new CaptureReader(await readFile(GOLDEN))].map(kept);
    expect(await streamed(GOLDEN)).toEqual({ packets: expected, damage: undefined });
  });

  it('may be larger than a chunk, with packets across the border', async () => {
    const lengths = Array.from({ length: 3000 }, (_unused, i) => 3000 + (i % 7));
    const { packets, damage } = await streamed(written('large.pcap', pcap(lengths)));
    expect(damage).toBeUndefined();
    expect(packets.map(({ bytes }) => bytes.length)).toEqual(lengths);
    expect(packets.every(({ bytes }, i) => bytes.every((byte) => byte === (i & 255)))).toBe(true);
    expect(packets[5]).toMatchObject({ timestampNs: 5_000_000_007n, originalLength: 3006 });
  });

  it('may have a block that is longer than a chunk, but not one without end', async () => {
    const golden = await readFile(GOLDEN);
    const packets = [...new CaptureReader(golden)].map(kept);
    const file = Buffer.concat([golden, unknownBlock(6 * 1024 * 1024), golden]);
    expect(await streamed(written('long.pcapng', file))).toEqual({
      packets: [...packets, ...packets],
      damage: undefined,
    });
    const endless = Buffer.concat([golden, unknownBlock(80 * 1024 * 1024)]);
    await expect(streamed(written('endless.pcapng', endless))).rejects.toThrow('a block of more than 64 MiB');
  });

  it('may be left before its end', async () => {
    const stream = await CaptureStream.open(written('left.pcap', pcap(Array.from({ length: 6000 }, () => 3000))));
    for await (const chunk of stream.chunks()) {
      for (const { bytes } of chunk) expect(bytes).toHaveLength(3000);
      break;
    }
    await expect(stream.chunks().next()).rejects.toThrow('cannot read');
  });

  it.each([['pcapng'], ['pcap']])('%s: gives the same packets wherever the pieces end', async (format) => {
    const file = format === 'pcap' ? pcap([0, 5, 60, 1500]) : await readFile('test/golden/ud-v4.pcapng');
    const whole = [...new CaptureReader(file)].map(kept);
    for (let piece = 1; piece < file.length; piece += repetitions(89, 13)) {
      const parser = parserOf(file);
      const packets: CapturedPacket[] = [];
      let from = 0;
      for (let end = piece; ; end = Math.min(file.length, end + piece)) {
        const bytes = Uint8Array.from(file.subarray(from, end));
        for (const packet of parser.packets(bytes, end === file.length)) packets.push(kept(packet));
        from += parser.consumed;
        if (end === file.length) break;
      }
      expect(parser.damage).toBeUndefined();
      expect(packets).toEqual(whole);
    }
  });

  it('says where it is damaged, counted from the begin of the file', async () => {
    const file = pcap(Array.from({ length: 3000 }, () => 3000));
    const { packets, damage } = await streamed(written('cut.pcap', file.subarray(0, file.length - 10)));
    expect(packets).toHaveLength(2999);
    expect(damage).toEqual({ offset: file.length - 3016, reason: 'the file ends inside a packet' });
  });

  it('is refused where it is none', async () => {
    await expect(streamed(written('empty', new Uint8Array(0)))).rejects.toThrow('the file is empty');
    await expect(streamed(written('text', Buffer.from('hello')))).rejects.toThrow('begins with 68 65 6c 6c');
    await expect(streamed(join(folder, 'nowhere'))).rejects.toThrow('there is no such file');
  });
});

it('a copy has the packets of the original, with its comments and others', async () => {
  const path = join(folder, 'copy.pcapng');
  const packets = [...new CaptureReader(await readFile(GOLDEN))].slice(0, 3);
  const copy = await CaptureCopy.create(path);
  await copy.add(packets[0]);
  await copy.add({ ...packets[1], comment: 'old' }, 'new');
  await copy.add({ ...packets[2], bytes: packets[2].bytes.subarray(0, 60) }, 'cut');
  await copy.close();
  const [first, second, third] = new CaptureReader(await readFile(path));
  expect(kept(first)).toEqual({ ...kept(packets[0]), comment: undefined });
  expect(kept(second)).toEqual({ ...kept(packets[1]), comment: 'old\nnew' });
  expect(third).toMatchObject({ originalLength: packets[2].originalLength, comment: 'cut' });
  expect(third.bytes).toHaveLength(60);
  await expect(CaptureCopy.create(join(folder, 'no', 'folder'))).rejects.toThrow('cannot write');
});
