import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { BlockDeviceError } from '../../../src/storage-rpc/disk/block-device.js';
import { MemoryDevice } from '../../../src/storage-rpc/disk/memory-device.js';
import { ServedDisk } from './nbd-pair.js';
import { CMD, goData, metaData, OPT, option, RawClient, request, u32 } from './raw-client.js';

const SIZE = 1 << 20;
const EIO = 5;
const EINVAL = 22;
const ENOSPC = 28;
const FUA = 1;
const DF = 4;
const REQ_ONE = 8;

/** A disk that counts and fails as it is told. */
class WatchedDisk extends MemoryDevice {
  flushes = 0;
  fuas = 0;
  failing = false;

  override async read(offset: number, length: number, into: Uint8Array): Promise<void> {
    if (this.failing) throw new BlockDeviceError('EIO', 'the platter is scratched');
    await super.read(offset, length, into);
  }

  override async write(offset: number, data: Uint8Array, options?: { readonly fua?: boolean }): Promise<void> {
    if (options?.fua === true) this.fuas++;
    await super.write(offset, data);
  }

  override async flush(): Promise<void> {
    this.flushes++;
    await super.flush();
  }
}

describe.each([
  ['structured', true],
  ['simple', false],
])('transmission with %s replies', (_, structured) => {
  let watched: WatchedDisk;
  let disk: ServedDisk;
  let client: RawClient;
  beforeEach(async () => {
    watched = new WatchedDisk(SIZE);
    disk = await ServedDisk.open(watched);
    client = await RawClient.inTransmission(disk.path, { structured });
  });
  afterEach(async () => {
    client.socket.destroy();
    await disk.close();
  });

  async function ask(...args: Parameters<typeof request>): Promise<number> {
    client.send(request(...args));
    return (await client.reply(args[0] === CMD.READ ? args[2] : 0)).errno;
  }

  test('what was written is read, the cookie comes back as it was', async () => {
    const data = Buffer.from(Uint8Array.from({ length: 5000 }, (_, i) => i % 251));
    client.send(request(CMD.WRITE, 12_345, data.length, { data, cookie: 0xfedc_ba98_7654_3210n }));
    expect(await client.reply()).toMatchObject({ errno: 0, cookie: 0xfedc_ba98_7654_3210n });
    client.send(request(CMD.READ, 12_345, data.length, { cookie: 9n }));
    const reply = await client.reply(data.length);
    expect(reply.cookie).toBe(9n);
    expect(reply.kind).toBe(structured ? 'chunk' : 'simple');
    const content = structured ? reply.data.subarray(8) : reply.data;
    expect(content.equals(data)).toBe(true);
    if (structured) expect([reply.type, reply.data.readBigUInt64BE()]).toEqual([1, 12_345n]);
  });

  test.each([
    ['a read past the end', CMD.READ, SIZE, 512, 0, EINVAL],
    ['a read far past 2^53', CMD.READ, 2n ** 63n - 512n, 4096, 0, EINVAL],
    ['a read at 2^64 - 1', CMD.READ, 2n ** 64n - 1n, 4096, 0, EINVAL],
    ['a zeroing past the end', CMD.WRITE_ZEROES, SIZE - 512, 1024, 0, ENOSPC],
    ['a trim past the end', CMD.TRIM, SIZE - 512, 1024, 0, EINVAL],
    ['a trim with a flag of another command', CMD.TRIM, 0, 512, REQ_ONE, EINVAL],
    ['a flag nobody knows', CMD.READ, 0, 512, 1 << 10, EINVAL],
    ['a command nobody knows', 99, 0, 512, 0, EINVAL],
    ['CACHE past the end', CMD.CACHE, SIZE, 512, 0, EINVAL],
    ['RESIZE, which was not offered', 8, 2 * SIZE, 0, 0, EINVAL],
    ['a read of 33 MiB', CMD.READ, 0, 33 << 20, 0, EINVAL],
  ])('%s is refused and the connection lives', async (_, type, offset, length, flags, errno) => {
    expect(await ask(type, offset, length, { flags })).toBe(errno);
    expect(await ask(CMD.READ, 0, 512)).toBe(0);
  });

  test('a write past the end is read to its last byte and refused', async () => {
    expect(await ask(CMD.WRITE, SIZE - 256, 512, { data: Buffer.alloc(512, 1) })).toBe(ENOSPC);
    expect(await ask(CMD.WRITE, 0, 33 << 20, { data: Buffer.alloc(33 << 20) })).toBe(ENOSPC);
    expect(await ask(CMD.READ, 0, 512)).toBe(0);
  });

  test('FLUSH flushes; FUA on a write goes with the write; FUA on a trim flushes after it', async () => {
    expect(await ask(CMD.FLUSH, 0, 0)).toBe(0);
    expect(watched.flushes).toBe(1);
    expect(await ask(CMD.WRITE, 0, 512, { flags: FUA, data: Buffer.alloc(512, 1) })).toBe(0);
    expect([watched.flushes, watched.fuas]).toEqual([1, 1]);
    expect(await ask(CMD.TRIM, 0, 512, { flags: FUA })).toBe(0);
    expect(watched.flushes).toBe(2);
  });

  test('a read of a disk that fails is an error, for this request alone', async () => {
    watched.failing = true;
    expect(await ask(CMD.READ, 0, 512)).toBe(EIO);
    watched.failing = false;
    expect(await ask(CMD.READ, 0, 512)).toBe(0);
  });

  test('requests of no bytes are answered', async () => {
    expect(await ask(CMD.READ, 0, 0)).toBe(0);
    expect(await ask(CMD.WRITE, 0, 0)).toBe(0);
    expect(await ask(CMD.TRIM, 0, 0)).toBe(0);
  });

  test('a request without magic ends the connection, and others live on', async () => {
    const other = await RawClient.inTransmission(disk.path, { structured });
    client.send(Buffer.alloc(28, 0x55));
    await client.hungUp();
    other.send(request(CMD.READ, 0, 512));
    expect((await other.reply(512)).errno).toBe(0);
    other.socket.destroy();
  });

  test('DISC after requests: all are answered, then the server hangs up', async () => {
    client.send(...Array.from({ length: 50 }, (_, i) => request(CMD.READ, 4096 * i, 4096, { cookie: BigInt(i) })));
    client.send(request(CMD.DISC, 0, 0));
    const cookies = new Set<bigint>();
    for (let i = 0; i < 50; i++) cookies.add((await client.reply(4096)).cookie);
    expect(cookies.size).toBe(50);
    await client.hungUp();
  });
});

describe('structured replies', () => {
  let disk: ServedDisk;
  let client: RawClient;
  beforeEach(async () => {
    disk = await ServedDisk.open(new MemoryDevice(SIZE));
    client = await RawClient.inTransmission(disk.path);
  });
  afterEach(async () => {
    client.socket.destroy();
    await disk.close();
  });

  test('what was never written comes as a hole, without its zeros', async () => {
    client.send(request(CMD.READ, 8192, 65_536, { flags: DF }));
    const { type, data } = await client.reply();
    expect([type, data.readBigUInt64BE(), data.readUInt32BE(8), data.length]).toEqual([2, 8192n, 65_536, 12]);
  });

  test('BLOCK_STATUS tells holes from data, one extent where one was asked for', async () => {
    client.send(request(CMD.WRITE, 65_536, 65_536, { data: Buffer.alloc(65_536, 1) }));
    await client.reply();
    const extents = async (flags: number) => {
      client.send(request(CMD.BLOCK_STATUS, 0, 196_608, { flags }));
      const { type, data } = await client.reply();
      expect([type, data.readUInt32BE()]).toEqual([5, 1]);
      return Array.from({ length: (data.length - 4) / 8 }, (_, i) => [
        data.readUInt32BE(4 + 8 * i),
        data.readUInt32BE(8 + 8 * i),
      ]);
    };
    expect(await extents(0)).toEqual([
      [65_536, 3],
      [65_536, 0],
      [65_536, 3],
    ]);
    expect(await extents(REQ_ONE)).toEqual([[65_536, 3]]);
  });

  test('BLOCK_STATUS without a context is refused, also where the context was of another export', async () => {
    const other = await RawClient.connect(disk.path);
    other.send(option(OPT.STRUCTURED), option(OPT.GO, goData('disk0')));
    await other.optionReplies(OPT.STRUCTURED);
    await other.optionReplies(OPT.GO);
    other.send(request(CMD.BLOCK_STATUS, 0, 65_536));
    expect((await other.reply()).errno).toBe(EINVAL);
    other.socket.destroy();
  });

  test('an error says why in words', async () => {
    client.send(request(CMD.READ, SIZE, 1));
    const { type, data } = await client.reply();
    expect(type).toBe(0x8001);
    expect(data.readUInt16BE(4)).toBe(data.length - 6);
    expect(data.length).toBeGreaterThan(6);
  });

  test('a context asked for again and refused is gone', async () => {
    const other = await RawClient.connect(disk.path);
    other.send(option(OPT.STRUCTURED), option(OPT.SET_META, metaData('disk0', 'base:allocation')));
    other.send(option(OPT.SET_META, u32(99)), option(OPT.GO, goData('disk0')));
    for (const code of [OPT.STRUCTURED, OPT.SET_META, OPT.SET_META, OPT.GO]) await other.optionReplies(code);
    other.send(request(CMD.BLOCK_STATUS, 0, 65_536));
    expect((await other.reply()).errno).toBe(EINVAL);
    other.socket.destroy();
  });
});
