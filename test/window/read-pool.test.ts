import { describe, expect, test } from 'vitest';
import { SeededRandom } from '../../src/core/random.js';
import { PoolReader } from '../../src/window/pool-reader.js';
import { PoolSource } from '../../src/window/pool-source.js';
import { NaglePolicy, NoDelayPolicy, type ReleasePolicy } from '../../src/window/release-policy.js';
import { TwoEnds } from './two-ends.js';

const BLOCK = 4096;

async function transfer(policy: ReleasePolicy, workNs: (n: number) => number, faults?: string) {
  const ends = await TwoEnds.create(4, { ...(faults !== undefined && { faults }), seed: 5 });
  const data = Buffer.alloc(40 * BLOCK + 17);
  const random = new SeededRandom(9).stream('data');
  for (let i = 0; i + 4 <= data.length; i += 4) data.writeUInt32LE(random.u32(), i);
  const arrived: Buffer[] = [];
  let spoilt = 0;
  const reader = new PoolReader(ends.client, {
    blocksMax: 4,
    readsMax: 2,
    policy,
    onBlock: async (bytes) => {
      const before = Buffer.from(bytes);
      arrived.push(before);
      await ends.sleep(1 + workNs(arrived.length));
      if (!before.equals(bytes)) spoilt++;
    },
  });
  let produced = 0;
  const source = await PoolSource.open(ends.server, {
    blocks: 4,
    blockBytes: BLOCK,
    fill: (block) => {
      const bytes = data.copy(block, 0, produced);
      produced += bytes;
      return bytes;
    },
  });
  await ends.until(reader.finished);
  return { ends, reader, source, data, arrived, spoilt };
}

describe('read pool', () => {
  const nagle = () => new NaglePolicy({ maxAvailableSegments: 2, maxAckTimeNs: 50_000 }, 4);
  const uneven = () => {
    const random = new SeededRandom(3).stream('data');
    return () => random.u32() % 40_000;
  };

  test.each([
    ['NoDelay', () => new NoDelayPolicy(), undefined],
    ['Nagle', nagle, undefined],
    ['Nagle over a lossy link', nagle, 'random=0.02'],
  ] as const)(
    'data is whole and in order, and no block changes while it is consumed: %s',
    async (_, policy, faults) => {
      const { reader, source, data, arrived, spoilt } = await transfer(policy(), uneven(), faults);
      expect(Buffer.concat(arrived).equals(data)).toBe(true);
      expect([spoilt, reader.invalidGrants, source.invalidAcks]).toEqual([0, 0, 0]);
      expect(source.grants).toBe(42); // 41 blocks and the end.
    },
  );

  test('a slow consumer holds the source back: it stalls on its exhausted pool', async () => {
    const { source } = await transfer(new NoDelayPolicy(), () => 100_000);
    expect(source.windowStalls).toBeGreaterThan(5);
  });

  test('Nagle sends fewer acknowledgements', async () => {
    const each = await transfer(new NoDelayPolicy(), () => 0);
    const few = await transfer(nagle(), () => 0);
    expect(each.reader.acknowledgements).toBe(41);
    expect(few.reader.acknowledgements).toBeLessThan(30);
  });

  test('grants that make no sense are counted, and nothing outside the pool is read', async () => {
    const { ends, reader } = await transfer(new NoDelayPolicy(), () => 0);
    for (const grant of [
      { id: 0, bytes: 1 },
      { id: 5, bytes: 1 },
      { id: 1, bytes: BLOCK + 1 },
    ]) {
      ends.server.send({ type: 'GRANT', ...grant });
    }
    await ends.until(ends.sleep(100_000));
    expect(reader.invalidGrants).toBe(3);
  });
});
