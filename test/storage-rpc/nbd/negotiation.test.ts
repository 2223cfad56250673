import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { MemoryDevice } from '../../../src/storage-rpc/disk/memory-device.js';
import { ServedDisk } from './nbd-pair.js';
import { goData, metaData, OPT, option, RawClient, u16, u32 } from './raw-client.js';

const SIZE = 1 << 20;
const ACK = 1;
const INFO = 3;
const ERR_UNSUP = 0x80000001;
const ERR_INVALID = 0x80000003;
const ERR_UNKNOWN = 0x80000006;
const ERR_EXT_HEADER_REQD = 0x8000000a;
const ERR_TOO_BIG = 0x80000009;

describe('the handshake of the NBD server', () => {
  let disk: ServedDisk;
  let client: RawClient;
  beforeEach(async () => {
    disk = await ServedDisk.open(new MemoryDevice(SIZE));
    client = await RawClient.connect(disk.path);
  });
  afterEach(async () => {
    client.socket.destroy();
    await disk.close();
  });

  async function answer(code: number, data?: Uint8Array) {
    client.send(option(code, data));
    return client.optionReplies(code);
  }

  test('lists its export', async () => {
    const [server, ack] = await answer(OPT.LIST);
    expect(server).toEqual({ type: 2, data: Buffer.concat([u32(5), Buffer.from('disk0')]) });
    expect(ack.type).toBe(ACK);
  });

  test('INFO tells size, flags, name, description and block sizes, and stays in the handshake', async () => {
    const replies = await answer(OPT.INFO, goData('disk0', 1, 2, 3));
    expect(replies.map(({ type }) => type)).toEqual([INFO, INFO, INFO, INFO, ACK]);
    const byKind = new Map(replies.slice(0, -1).map(({ data }) => [data.readUInt16BE(), data.subarray(2)]));
    expect(byKind.get(0)!.readBigUInt64BE()).toBe(BigInt(SIZE));
    expect(byKind.get(0)!.readUInt16BE(8)).toBe(0xd6d); // HAS, FLUSH, FUA, TRIM, WRITE_ZEROES, MULTI_CONN, CACHE, FAST_ZERO
    expect(byKind.get(1)!.toString()).toBe('disk0');
    expect(byKind.get(2)!.toString()).toBe('for tests');
    expect([0, 4, 8].map((at) => byKind.get(3)!.readUInt32BE(at))).toEqual([1, 4096, 32 << 20]);
    expect((await answer(OPT.LIST)).at(-1)!.type).toBe(ACK);
  });

  test('with structured replies "do not fragment" is offered, too', async () => {
    await answer(OPT.STRUCTURED);
    const [info] = await answer(OPT.INFO, goData('disk0'));
    expect(info.data.readUInt16BE(10)).toBe(0xded);
  });

  test('the empty name is the export; another name is not', async () => {
    expect((await answer(OPT.INFO, goData('other')))[0].type).toBe(ERR_UNKNOWN);
    expect((await answer(OPT.GO, goData(''))).at(-1)!.type).toBe(ACK);
  });

  test.each([
    ['LIST with data', OPT.LIST, Buffer.from('x'), ERR_INVALID],
    ['STARTTLS', OPT.STARTTLS, Buffer.alloc(0), ERR_UNSUP],
    ['EXTENDED_HEADERS with data', OPT.EXTENDED, Buffer.alloc(1), ERR_INVALID],
    ['an option of the future', 4711, Buffer.alloc(1000), ERR_UNSUP],
    [
      'GO with a name longer than the option',
      OPT.GO,
      Buffer.concat([u32(100), Buffer.from('abc'), u16(0)]),
      ERR_INVALID,
    ],
    ['GO with more requests than there are', OPT.GO, Buffer.concat([u32(0), u16(9), u16(0)]), ERR_INVALID],
    ['GO with bytes behind', OPT.GO, Buffer.concat([goData('disk0'), u16(1)]), ERR_INVALID],
    ['a name that is not UTF-8', OPT.GO, Buffer.concat([u32(1), Buffer.from([0xff]), u16(0)]), ERR_INVALID],
    ['a name with NUL', OPT.GO, goData('disk\0'), ERR_INVALID],
    ['a name of 5000 bytes', OPT.GO, goData('x'.repeat(5000)), ERR_INVALID],
    ['structured replies with data', OPT.STRUCTURED, Buffer.alloc(1), ERR_INVALID],
    ['SET_META before structured replies', OPT.SET_META, metaData('disk0', 'base:allocation'), ERR_INVALID],
    ['an option of 100 KiB', 4711, Buffer.alloc(100 * 1024), ERR_TOO_BIG],
  ])('%s is refused, and the next option is heard', async (_, code, data, error) => {
    expect(await answer(code, data)).toMatchObject([{ type: error }]);
    expect((await answer(OPT.GO, goData('disk0'))).at(-1)!.type).toBe(ACK);
  });

  test.each([
    ['an unknown client flag', () => RawClient.connect(disk.path, 7)],
    ['a client that is not "fixed"', () => RawClient.connect(disk.path, 0)],
  ])('%s ends the connection', async (_, connect) => {
    await (await connect()).hungUp();
    expect(disk.server.counters.refusedConnections).toBe(1);
  });

  test.each([
    ['an option without magic', Buffer.from('IHAVEOPX00000000')],
    ['an option of 2 MiB', Buffer.concat([Buffer.from('IHAVEOPT'), u32(7), u32(2 << 20)])],
    ['EXPORT_NAME of nothing', option(OPT.EXPORT_NAME, Buffer.from('other'))],
  ])('%s ends the connection', async (_, bytes) => {
    client.send(bytes);
    await client.hungUp();
  });

  test('ABORT is acknowledged, then the server hangs up', async () => {
    expect(await answer(OPT.ABORT)).toMatchObject([{ type: ACK }]);
    await client.hungUp();
  });

  test.each([
    ['without zeros where both sides leave them out', 3, 10],
    ['with 124 zeros where the client wants them', 1, 134],
  ])('EXPORT_NAME answers %s', async (_, flags, length) => {
    const old = await RawClient.connect(disk.path, flags);
    old.send(option(OPT.EXPORT_NAME, Buffer.from('disk0')));
    const bytes = await old.take(length);
    expect(bytes.readBigUInt64BE()).toBe(BigInt(SIZE));
    expect(bytes.subarray(10).every((byte) => byte === 0)).toBe(true);
    old.send(Buffer.concat([u32(0x25609513), u16(0), u16(3), Buffer.alloc(8), Buffer.alloc(12)]));
    expect(await old.reply()).toMatchObject({ errno: 0 });
    old.socket.destroy();
  });

  test('extended headers bring chunks and contexts with them, and no way back to structured replies', async () => {
    expect(await answer(OPT.EXTENDED)).toMatchObject([{ type: ACK }]);
    expect(await answer(OPT.STRUCTURED)).toMatchObject([{ type: ERR_EXT_HEADER_REQD }]);
    const flags = async () => (await answer(OPT.INFO, goData('disk0')))[0].data.readUInt16BE(10);
    expect(await flags()).toBe(0xded);
    expect((await answer(OPT.SET_META, metaData('disk0', 'base:allocation'))).map(({ type }) => type)).toEqual([
      4,
      ACK,
    ]);
    expect(await flags()).toBe(0x1ded); // BLOCK_STATUS_PAYLOAD
    expect((await answer(OPT.GO, goData('disk0'))).at(-1)!.type).toBe(ACK);
  });

  test('EXPORT_NAME behind extended headers ends the connection', async () => {
    await answer(OPT.EXTENDED);
    client.send(option(OPT.EXPORT_NAME, Buffer.from('disk0')));
    await client.hungUp();
  });

  test('meta contexts: the wildcard lists, only the full name sets, other namespaces are passed over', async () => {
    await answer(OPT.STRUCTURED);
    const names = async (code: number, ...queries: string[]) =>
      (await answer(code, metaData('disk0', ...queries))).slice(0, -1).map(({ data }) => data.subarray(4).toString());
    expect(await names(OPT.LIST_META)).toEqual(['base:allocation']);
    expect(await names(OPT.LIST_META, 'base:')).toEqual(['base:allocation']);
    expect(await names(OPT.LIST_META, 'qemu:')).toEqual([]);
    expect(await names(OPT.SET_META, 'base:')).toEqual([]);
    expect(await names(OPT.SET_META, 'qemu:dirty-bitmap', 'base:allocation')).toEqual(['base:allocation']);
    expect(await answer(OPT.SET_META, metaData('other', 'base:allocation'))).toMatchObject([{ type: ERR_UNKNOWN }]);
  });
});
