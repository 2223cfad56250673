import { describe, expect, test } from 'vitest';
import { SeededRandom } from '../../src/core/random.js';
import { BlockRequester, BlockServer } from '../../src/window/alloc-per-write.js';
import { PoolOwner, type PoolOwnerOptions } from '../../src/window/pool-owner.js';
import { PoolWriter, type PoolWriterOptions } from '../../src/window/pool-writer.js';
import { NaglePolicy, NoDelayPolicy } from '../../src/window/release-policy.js';
import type { PairOptions } from '../support/pair.js';
import { TwoEnds } from './two-ends.js';

const BLOCK = 4096;
const MAT_NS = 50_000;

interface World {
  readonly ends: TwoEnds;
  readonly owner: PoolOwner;
  readonly writer: PoolWriter;
  /** What arrived, block after block. */
  readonly arrived: Buffer[];
}

interface WorldOptions
  extends Partial<Omit<PoolOwnerOptions, 'onBlock'>>,
    Partial<Omit<PoolWriterOptions, 'blocksMax'>> {
  readonly pair?: PairOptions;
  /** How long the server works on the nth block (from 0), in ns; 0: done at once. */
  readonly workNs?: (n: number) => number;
}

async function worldOf(options: WorldOptions = {}): Promise<World> {
  const blocks = options.blocks ?? 4;
  const blocksMax = options.blocksMax ?? blocks;
  const ends = await TwoEnds.create(blocksMax, options.pair);
  const arrived: Buffer[] = [];
  const writer = new PoolWriter(ends.client, {
    blocksMax,
    ...(options.growAfterStalls !== undefined && { growAfterStalls: options.growAfterStalls }),
  });
  const owner = await ends.until(
    PoolOwner.open(ends.server, {
      blocks,
      blockBytes: BLOCK,
      blocksMax,
      policy: options.policy ?? new NoDelayPolicy(),
      onBlock: (bytes) => {
        const workNs = options.workNs?.(arrived.length) ?? 0;
        arrived.push(Buffer.from(bytes));
        return workNs === 0 ? undefined : ends.sleep(workNs);
      },
    }),
  );
  await ends.until(writer.ready);
  return { ends, owner, writer, arrived };
}

function fill(bytes: Buffer, seed: number): void {
  const random = new SeededRandom(seed).stream('data');
  for (let i = 0; i < bytes.length; i += 4) bytes.writeUInt32LE(random.u32(), i);
}

function nagle(mas: number, blocks: number): NaglePolicy {
  return new NaglePolicy({ maxAvailableSegments: mas, maxAckTimeNs: MAT_NS }, blocks);
}

describe('write pool', () => {
  test('data arrives whole and in order, the last block as short as it is', async () => {
    const { ends, owner, writer, arrived } = await worldOf();
    const source = ends.pair.a.mr;
    fill(source.bytes, 1);
    const length = 25 * BLOCK + 100;
    await ends.until(writer.write(source, 8, length));
    expect(Buffer.concat(arrived)).toEqual(source.bytes.subarray(8, 8 + length));
    expect(arrived.map((block) => block.length)).toEqual([...Array(25).fill(BLOCK), 100]);
    expect(owner.full).toBe(0);
  });

  test('overlapping writes are carried out in order', async () => {
    const { ends, writer, arrived } = await worldOf();
    const source = ends.pair.a.mr;
    fill(source.bytes, 2);
    const order: number[] = [];
    const writes = [0, 1, 2, 3, 4, 5].map((i) => writer.write(source, i * 10_000, 10_000).then(() => order.push(i)));
    await ends.until(Promise.all(writes));
    expect(order).toEqual([0, 1, 2, 3, 4, 5]);
    expect(Buffer.concat(arrived)).toEqual(source.bytes.subarray(0, 60_000));
  });

  test.each([
    ['go-back-n', 'random=0.02'],
    ['selective-repeat', 'random=0.02'],
  ] as const)('data is whole over a lossy link, %s', async (recovery, faults) => {
    const { ends, writer, arrived } = await worldOf({ pair: { recovery, faults, seed: 7 }, policy: nagle(2, 4) });
    fill(ends.pair.a.mr.bytes, 3);
    await ends.until(writer.write(ends.pair.a.mr));
    expect(Buffer.concat(arrived).equals(ends.pair.a.mr.bytes)).toBe(true);
    expect(ends.pair.link.counters['a>b'].dropped).toBeGreaterThan(0);
  });

  test('no more blocks are in use than the pool has, however slow the server is', async () => {
    const { ends, owner, writer } = await worldOf({ workNs: () => 20_000 });
    let most = 0;
    const write = writer.write(ends.pair.a.mr, 0, 40 * BLOCK);
    const watch = async () => {
      for (let i = 0; i < 100; i++) {
        most = Math.max(most, owner.full, writer.blocksInUse);
        await ends.sleep(5_000);
      }
    };
    await ends.until(Promise.all([write, watch()]));
    expect(most).toBe(4);
    expect(writer.windowStalls).toBeGreaterThan(5);
  });

  test('NoDelay sends an acknowledgement a block', async () => {
    const { ends, owner, writer } = await worldOf({ blocks: 16 });
    await ends.until(writer.write(ends.pair.a.mr, 0, 128 * BLOCK));
    expect(owner.acknowledgements).toBe(128);
  });

  test('Nagle with MAS 8 sends one a eight blocks', async () => {
    const { ends, owner, writer } = await worldOf({ blocks: 16, policy: nagle(8, 16) });
    await ends.until(writer.write(ends.pair.a.mr, 0, 128 * BLOCK));
    expect(owner.acknowledgements).toBe(16);
  });

  test('Nagle gives the last blocks of a burst back after MAT', async () => {
    const { ends, owner, writer } = await worldOf({ blocks: 16, policy: nagle(8, 16) });
    await ends.until(writer.write(ends.pair.a.mr, 0, 3 * BLOCK));
    expect(writer.blocksInUse).toBe(3);
    await ends.until(ends.sleep(MAT_NS / 2));
    expect([writer.blocksInUse, owner.acknowledgements]).toEqual([3, 0]);
    await ends.until(ends.sleep(MAT_NS));
    expect([writer.blocksInUse, owner.acknowledgements]).toEqual([0, 1]);
  });

  test.each(['nodelay', 'nagle'])('blocks emptied out of order are never written over: %s', async (policy) => {
    const random = new SeededRandom(11).stream('data');
    const held = new Map<Buffer, Buffer>();
    const ends = await TwoEnds.create(4);
    const writer = new PoolWriter(ends.client, { blocksMax: 4 });
    let spoilt = 0;
    let total = 0;
    const owner = await ends.until(
      PoolOwner.open(ends.server, {
        blocks: 4,
        blockBytes: BLOCK,
        policy: policy === 'nagle' ? nagle(2, 4) : new NoDelayPolicy(),
        onBlock: async (bytes) => {
          const block = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
          held.set(block, Buffer.from(block));
          await ends.sleep(1_000 + (random.u32() % 60_000));
          if (!block.equals(held.get(block)!)) spoilt++;
          total += block.length;
        },
      }),
    );
    fill(ends.pair.a.mr.bytes, 4);
    await ends.until(writer.write(ends.pair.a.mr, 0, 64 * BLOCK));
    await ends.until(ends.sleep(1_000_000));
    expect([spoilt, total, owner.full, owner.invalidNotices]).toEqual([0, 64 * BLOCK, 0, 0]);
  });

  test('a window that is exhausted again and again grows by agreement, and old acknowledgements still count', async () => {
    const world = await worldOf({ blocks: 2, blocksMax: 16, growAfterStalls: 3, workNs: () => 30_000 });
    const { ends, owner, writer, arrived } = world;
    fill(ends.pair.a.mr.bytes, 5);
    await ends.until(writer.write(ends.pair.a.mr));
    await ends.until(ends.sleep(1_000_000));
    expect([owner.blocks, writer.blocks]).toEqual([16, 16]);
    expect([writer.blocksInUse, writer.invalidAcks, owner.invalidNotices]).toEqual([0, 0, 0]);
    expect(Buffer.concat(arrived).equals(ends.pair.a.mr.bytes)).toBe(true);
  });

  test('without leave to grow the window stays', async () => {
    const { ends, owner, writer } = await worldOf({ blocks: 2, blocksMax: 16, workNs: () => 30_000 });
    await ends.until(writer.write(ends.pair.a.mr, 0, 64 * BLOCK));
    expect([owner.blocks, writer.blocks]).toEqual([2, 2]);
  });

  test('a request to grow that is answered already is not answered again', async () => {
    const { ends, owner, writer } = await worldOf({ blocks: 2, blocksMax: 16 });
    ends.client.send({ type: 'GROW', version: 1, count: 2 });
    ends.client.send({ type: 'GROW', version: 1, count: 2 });
    await ends.until(ends.sleep(100_000));
    expect([owner.blocks, writer.blocks]).toEqual([4, 4]);
  });

  test('acknowledgements and notices that make no sense are counted and ignored', async () => {
    const { ends, owner, writer } = await worldOf();
    ends.server.send({ type: 'ACK_ID', id: 3 });
    ends.server.send({ type: 'ACK_COUNT', count: 1 });
    ends.server.send({ type: 'GROW' });
    ends.client.send({ type: 'POOL' });
    const { addr: remoteAddr, rkey } = ends.pair.b.mr;
    for (const immediate of [0, 5, 0xffffffff]) {
      ends.client.post({ opcode: 'RDMA_WRITE_WITH_IMM', immediate, remoteAddr, rkey }, () => {});
    }
    await ends.until(ends.sleep(100_000));
    expect([writer.invalidAcks, owner.invalidNotices]).toEqual([2, 3]);
    expect([ends.client.counters.malformed, ends.server.counters.malformed]).toEqual([1, 1]);
    await ends.until(writer.write(ends.pair.a.mr, 0, 10 * BLOCK)); // All is well.
  });

  test('a description that does not fit ends the connection with a reason', async () => {
    const { ends, writer } = await worldOf();
    ends.server.send({ type: 'POOL', version: 2, id: 5, count: 1000, bytes: BLOCK });
    await ends.until(ends.sleep(100_000));
    await expect(writer.write(ends.pair.a.mr, 0, BLOCK)).rejects.toThrow(/cannot be used/);
  });

  test('a peer that is gone fails the writes that wait for it, none hangs', async () => {
    const { ends, writer } = await worldOf({ pair: { attrA: { timeout: 8, retryCnt: 1 } } });
    ends.pair.b.host.connect(() => ends.clock.nowNs()); // It hears and says nothing any more.
    await ends.pair.b.qp.modify({ state: 'ERR' });
    const writes = [writer.write(ends.pair.a.mr), writer.write(ends.pair.a.mr)];
    const outcomes = await ends.until(Promise.allSettled(writes));
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  });

  test('a consumer that throws ends the server end with its error', async () => {
    const ends = await TwoEnds.create(2);
    const writer = new PoolWriter(ends.client, { blocksMax: 2 });
    const failure = new Promise<Error>((resolve) => {
      ends.server.onFailure = resolve;
    });
    await ends.until(
      PoolOwner.open(ends.server, {
        blocks: 2,
        blockBytes: BLOCK,
        policy: new NoDelayPolicy(),
        onBlock: () => {
          throw new Error('the disk is full');
        },
      }),
    );
    void writer.write(ends.pair.a.mr, 0, BLOCK).catch(() => {});
    expect((await ends.until(failure)).message).toBe('the disk is full');
  });

  test.each([
    [0, BLOCK],
    [65_536, BLOCK],
    [1, 0],
    [1, 2 ** 31],
  ])('a pool of %d blocks of %d bytes is refused', async (blocks, blockBytes) => {
    const ends = await TwoEnds.create(2);
    await expect(
      PoolOwner.open(ends.server, { blocks, blockBytes, policy: new NoDelayPolicy(), onBlock: () => {} }),
    ).rejects.toThrow(/a pool cannot have/);
  });
});

describe('alloc per write, the baseline', () => {
  test('data arrives whole, with two control messages a block', async () => {
    const ends = await TwoEnds.create(4);
    const arrived: Buffer[] = [];
    await BlockServer.open(ends.server, {
      blocks: 4,
      blockBytes: BLOCK,
      onBlock: (bytes) => void arrived.push(Buffer.from(bytes)),
    });
    const writer = new BlockRequester(ends.client);
    fill(ends.pair.a.mr.bytes, 6);
    await ends.until(writer.write(ends.pair.a.mr, 0, 64 * BLOCK));
    expect(Buffer.concat(arrived)).toEqual(ends.pair.a.mr.bytes.subarray(0, 64 * BLOCK));
    expect(ends.client.counters.sent + ends.server.counters.sent).toBe(128);
  });

  test('takes longer than the window by a round trip a block', async () => {
    const elapsed = async (write: (ends: TwoEnds) => Promise<void>) => {
      const ends = await TwoEnds.create(16, { delayNs: 10_000 });
      const before = ends.clock.nowNs();
      await ends.until(write(ends));
      return ends.clock.nowNs() - before;
    };
    const baseline = await elapsed(async (ends) => {
      await BlockServer.open(ends.server, { blocks: 16, blockBytes: BLOCK, onBlock: () => {} });
      await new BlockRequester(ends.client).write(ends.pair.a.mr, 0, 128 * BLOCK);
    });
    const windowed = await elapsed(async (ends) => {
      const policy = nagle(8, 16);
      const writer = new PoolWriter(ends.client, { blocksMax: 16 });
      await PoolOwner.open(ends.server, { blocks: 16, blockBytes: BLOCK, policy, onBlock: () => {} });
      await writer.write(ends.pair.a.mr, 0, 128 * BLOCK);
    });
    // Ta + Tw against Tw a block: 2 x 10 us for asking, 2 x 10 us for the write and its acknowledgement, against 3.3 us at 10 Gb/s.
    expect(baseline / 128).toBeGreaterThan(40_000);
    expect(windowed / 128).toBeLessThan(8_000);
  });
});
