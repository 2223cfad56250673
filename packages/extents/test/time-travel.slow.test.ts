/** One history with every earlier state of every folder; `time-travel.long.ts` has all histories. */

import { afterEach, describe, expect, it, vi } from 'vitest';
import { ExtentStore } from '../src/extent-store.js';
import { MetadataCheck } from '../src/metadata-check.js';
import { MetadataSchema, type NodeRecord } from '../src/metadata-schema.js';
import { Replica } from '../src/replica.js';
import { StreamManager } from '../src/stream-manager.js';
import { acceptedCopiesOf, copiesOf, replaceByCopy, startCopy } from './folder-copies.js';
import { type History, replacementsOf, runHistory, type Step, travel } from './time-travel.js';

const STEPS: Step[] = ['open', 'append', 'ack', 'append', 'ack'];

afterEach(() => void vi.restoreAllMocks());

async function problemsOf(history: History): Promise<string[]> {
  const problems: string[] = [];
  for (const replacement of replacementsOf(history))
    for (const problem of await travel(history, [replacement]))
      problems.push(`${JSON.stringify(replacement)}: ${problem}`);
  return problems;
}

describe('a folder that comes back as it once was', () => {
  it('loses no acknowledged record', async () => {
    const history = await runHistory(STEPS);
    expect(history.acknowledged).toHaveLength(2);
    expect(replacementsOf(history).length).toBeGreaterThan(8);
    expect(await problemsOf(history)).toEqual([]);
  });

  it('loses some by the rule of the shortest length', async () => {
    vi.spyOn(StreamManager.prototype, 'chooseLength').mockImplementation(({ replicas }) =>
      replicas.length === 0
        ? { length: undefined, reason: 'nobody answers' }
        : { length: Math.min(...replicas.map(({ length }) => length)) },
    );
    expect(await problemsOf(await runHistory(STEPS))).not.toEqual([]);
  });

  it('loses some where no node is asked what it has seen', async () => {
    vi.spyOn(MetadataCheck.prototype, 'hear').mockImplementation(() => {});
    vi.spyOn(MetadataCheck.prototype, 'isVerified', 'get').mockReturnValue(true);
    vi.spyOn(ExtentStore.prototype, 'noteVersion').mockResolvedValue();
    expect(await problemsOf(await runHistory(STEPS))).not.toEqual([]);
  });

  it('loses some where a replica that was read from a disk counts as one that has run', async () => {
    const { fence } = Replica.prototype;
    vi.spyOn(Replica.prototype, 'fence').mockImplementation(async function (this: Replica, epoch) {
      return { ...(await fence.call(this, epoch)), restarts: 0 };
    });
    expect(await problemsOf(await runHistory(STEPS))).not.toEqual([]);
  });

  it('has extents deleted for good where nothing stays in quarantine and versions are not compared', async () => {
    vi.spyOn(MetadataCheck.prototype, 'hear').mockImplementation(() => {});
    vi.spyOn(MetadataCheck.prototype, 'isVerified', 'get').mockReturnValue(true);
    vi.spyOn(ExtentStore.prototype, 'noteVersion').mockResolvedValue();
    vi.spyOn(ExtentStore.prototype, 'remove').mockImplementation(function (this: ExtentStore, extent) {
      return this.removeSpare(extent);
    });
    expect((await problemsOf(await runHistory(STEPS))).join()).toMatch(/was deleted/);
  });

  it('is refused, and accepted where folders have no marks', async () => {
    const refusedDisks = async () => {
      const spy = vi.spyOn(StreamManager.prototype, 'handle');
      const history = await runHistory(['open', 'append', 'ack', 'copy', 'checkpoint']);
      for (const one of replacementsOf(history).filter(({ folder }) => folder.startsWith('node')))
        await travel(history, [one]);
      const managers = new Set(spy.mock.contexts as StreamManager[]);
      return [...managers].reduce((sum, { counters }) => sum + counters.refusedDisks, 0);
    };
    expect(await refusedDisks()).toBeGreaterThan(0);
    vi.restoreAllMocks();
    vi.spyOn(ExtentStore.prototype, 'setMark').mockResolvedValue();
    expect(await refusedDisks()).toBe(0);
  });
});

describe('a copy of a folder that is started elsewhere', () => {
  /** Of some copies of the first node, until one of them is like this. */
  async function problemsOfCopies(until?: RegExp): Promise<string> {
    const history = await runHistory(STEPS, true);
    let problems = '';
    for (const copy of copiesOf(history).filter(({ node, moment }) => node === 0 && moment % 4 === 1)) {
      for (const problem of await startCopy(history, copy)) problems += `${JSON.stringify(copy)}: ${problem}\n`;
      if (until?.test(problems) === true) break;
    }
    return problems;
  }

  it('takes nothing from its original, which is live or down', async () => {
    expect(await problemsOfCopies()).toBe('');
  });

  it('loses acknowledged records where its refusal counts as the loss of the original', async () => {
    const { commit } = MetadataSchema.prototype;
    vi.spyOn(MetadataSchema.prototype, 'commit').mockImplementation(function (this: MetadataSchema, changes) {
      const refusing = changes.map((change) => {
        const value = change.value as NodeRecord | undefined;
        return value?.copy === undefined ? change : { ...change, value: { ...value, refused: value.copy } };
      });
      return commit.call(this, refusing);
    });
    expect(await problemsOfCopies(/not read/)).toMatch(/not read/);
  });
});

describe('a copy of a folder that is started as its node, which is down', () => {
  /** Of copies of the first node, until one has a problem that is like this. */
  async function problemsOfCopies(until?: RegExp): Promise<string> {
    const history = await runHistory(STEPS, true);
    let problems = '';
    for (const copy of acceptedCopiesOf(history).filter(({ node }) => node === 0)) {
      const { problems: some, isAccepted } = await replaceByCopy(history, copy);
      expect(isAccepted).toBe(true);
      for (const problem of some) problems += `${JSON.stringify(copy)}: ${problem}\n`;
      if (until?.test(problems) === true) break;
    }
    return problems;
  }

  it('loses no acknowledged record, whichever nodes are down as well', async () => {
    expect(await problemsOfCopies()).toBe('');
  });

  it('loses some where its replicas count as those of a node that has run', async () => {
    const { fence } = Replica.prototype;
    vi.spyOn(Replica.prototype, 'fence').mockImplementation(async function (this: Replica, epoch) {
      return { ...(await fence.call(this, epoch)), restarts: 0 };
    });
    expect(await problemsOfCopies(/not read/)).toMatch(/not read/);
  });
});
