import { describe, expect, it } from 'vitest';
import { PerftestExchange } from '../../src/cm/perftest-exchange.js';
import { BINARY_KEYS, type PerftestKeys, TEXT_KEYS } from '../../src/cm/perftest-keys.js';
import { tcpWire } from '../../src/cm/perftest-wire.js';
import { fromHex } from '../../src/core/bytes.js';
import { IpAddress } from '../../src/packet/address.js';
import { tcpPair } from './tcp-pair.js';

/** What ib_write_bw 6.06 wrote. */
const LINE =
  '0000:0001:000024:eaed7c:00001f47:00007ff3cac72000:00:00:00:00:00:00:00:00:00:00:ff:ff:0a:4d:00:02:00000000:\0';
const KEYS: PerftestKeys = {
  outstandingReads: 1,
  qpn: 0x24,
  psn: 0xeaed7c,
  rkey: 0x1f47,
  remoteAddr: 0x7ff3cac72000n,
  address: IpAddress.parse('10.77.0.2'),
};

/** What ib_write_bw -R 6.06 sent over its own queue pair. */
const STRUCT =
  '00000000000000010000003300a113d5000022f3000000000000562e0e4c400000000000000000000000ffff0a4d00020000000000000001';

describe('the keys of a queue pair', () => {
  it('are a C structure over a queue pair', () => {
    const keys = BINARY_KEYS.parse(fromHex(STRUCT));
    expect(keys).toEqual({
      outstandingReads: 1,
      qpn: 0x33,
      psn: 0xa113d5,
      rkey: 0x22f3,
      remoteAddr: 0x562e0e4c4000n,
      address: IpAddress.parse('10.77.0.2'),
    });
    // All but the GID index, which nobody reads.
    expect(BINARY_KEYS.encode(keys).subarray(0, 52)).toEqual(Buffer.from(STRUCT, 'hex').subarray(0, 52));
    expect(BINARY_KEYS.blank).toHaveLength(STRUCT.length / 2);
  });

  it('are the 108 bytes of perftest', () => {
    expect(LINE).toHaveLength(108);
    expect(Buffer.from(TEXT_KEYS.encode(KEYS)).toString('latin1')).toBe(LINE);
    expect(TEXT_KEYS.parse(Buffer.from(LINE))).toEqual(KEYS);
  });

  it('hold an IPv6 address and 64 bits', () => {
    const keys = { ...KEYS, remoteAddr: 2n ** 64n - 4096n, rkey: 0xffffffff, address: IpAddress.parse('fd77::2') };
    expect(TEXT_KEYS.parse(TEXT_KEYS.encode(keys))).toEqual(keys);
  });

  it.each([
    ['a letter that is no digit', LINE.replace('eaed7c', 'eaed7x')],
    ['a field too short', LINE.replace(':0001:', ':001:')],
    ['no end', LINE.replace('\0', ' ')],
  ])('are refused with %s', (_, line) => {
    expect(() => TEXT_KEYS.parse(Buffer.from(line))).toThrow(/perftest/);
  });
});

describe('the exchange', () => {
  it('of a client writes what ib_write_bw reads, message by message', async () => {
    const { client, server } = await tcpPair();
    const opening = PerftestExchange.open(tcpWire(client), 'client', { pathMtu: 1024 });
    const said: string[] = [];
    for (const [bytes, answer] of [
      [16, '362e3036000000000000000000000000'],
      [4, '00002000'],
      [4, '00000080'],
      [2, '3500'],
    ] as const) {
      said.push((await server.read(bytes, 'a message')).toString('hex'));
      server.write(fromHex(answer));
    }
    expect(said).toEqual(['362e3230000000000000000000000000', '00001000', '00000040', '3300']);
    expect(await opening).toMatchObject({
      peerVersion: '6.06',
      cycleBufferBytes: 8192,
      cacheLineBytes: 128,
      pathMtu: 1024,
    });
  });

  it('runs from the version to the report, with a barrier at each step', async () => {
    const { client, server } = await tcpPair();
    const other = { ...KEYS, qpn: 0x25, address: IpAddress.parse('10.77.0.3') };
    const report = { sizeBytes: 65536n, iterations: 5n, peak: 97.5, average: 48.25, messageRate: 0.000784 };
    const nothing = { sizeBytes: 0n, iterations: 0n, peak: 0, average: 0, messageRate: 0 };
    const run = async (
      role: 'client' | 'server',
      own: { keys: PerftestKeys; pathMtu: number; report: typeof report },
    ) => {
      const exchange = await PerftestExchange.open(tcpWire(role === 'client' ? client : server), role, own);
      const keys = await exchange.exchangeKeys(own.keys);
      await exchange.barrier();
      await exchange.barrier();
      const theirs = await exchange.exchangeReport(own.report);
      await exchange.finish();
      return { pathMtu: exchange.pathMtu, keys, report: theirs };
    };
    const [atClient, atServer] = await Promise.all([
      run('client', { keys: KEYS, pathMtu: 4096, report }),
      run('server', { keys: other, pathMtu: 2048, report: nothing }),
    ]);
    expect(atClient).toEqual({ pathMtu: 2048, keys: other, report: nothing });
    expect(atServer).toEqual({ pathMtu: 2048, keys: KEYS, report });
    expect((await server.read(5, 'done')).toString()).toBe('done\0');
  });

  it('lets a server hear that its client is done before it answers', async () => {
    const { client, server } = await tcpPair();
    const [atClient, atServer] = await Promise.all([
      PerftestExchange.open(tcpWire(client), 'client', { pathMtu: 1024 }),
      PerftestExchange.open(tcpWire(server), 'server', { pathMtu: 1024 }),
    ]);
    let answered = false;
    const leaving = atClient.finish().then(() => {
      answered = true;
    });
    await atServer.clientIsDone();
    expect(answered).toBe(false);
    await atServer.finish();
    await leaving;
    expect(answered).toBe(true);
  });

  it.each([
    ['too old', '5.60', 'too old'],
    ['something else', 'HTTP/1.1', 'not perftest'],
  ])('is refused by a peer that is %s', async (_, version, words) => {
    const { client, server } = await tcpPair();
    server.write(Buffer.from(version.padEnd(16, '\0')));
    await expect(PerftestExchange.open(tcpWire(client), 'client', { pathMtu: 1024 })).rejects.toThrow(words);
  });
});
