/** Metadata in files: the power fails at every byte, the disk fails and rots. */

import { beforeEach, describe, expect, it } from 'vitest';
import { SeededRandom } from '../../../src/core/random.js';
import { inVirtualTime, metadataContract } from '../../../test/contracts/metadata-contract.js';
import { pass, until } from '../../../test/support/virtual-time.js';
import { EventQueue } from '../../lab/src/sim/event-queue.js';
import { virtualClock } from '../../lab/src/sim/virtual-clock.js';
import { LogMetadata } from '../src/log-metadata.js';
import { SimDisk } from './sim-disk.js';

const SMALL = { compactBytes: 400 };

metadataContract('metadata in files', () =>
  inVirtualTime((events) => {
    const disk = new SimDisk(events, new SeededRandom(1).stream('disk'));
    return LogMetadata.open(disk.open(), virtualClock(events), SMALL);
  }),
);

describe('metadata in files', () => {
  let events: EventQueue;
  let disk: SimDisk;
  beforeEach(() => {
    events = new EventQueue();
    disk = new SimDisk(events, new SeededRandom(2).stream('disk'));
  });

  const open = (options = {}) => until(events, LogMetadata.open(disk.open(), virtualClock(events), options));
  /** Everything, with versions, as text. */
  const stateOf = async (store: LogMetadata) =>
    JSON.stringify((await until(events, store.list(''))).map(({ key, value, version }) => [key, value, version]));
  const put = (store: LogMetadata, key: string, value: string) =>
    until(events, store.commit({ compare: [], put: [{ key, value }] }));
  const fileNames = () => [...disk.files.keys()].sort();

  /** A store with a snapshot and five transactions in one file, and its state after each of them by the length of the file. */
  async function written() {
    const store = await open();
    const states = new Map([[disk.image().get('1.metadata')!.length, await stateOf(store)]]);
    for (let k = 0; k < 5; k++) {
      await put(store, `key/${k % 3}`, `value ${k}`);
      states.set(disk.image().get('1.metadata')!.length, await stateOf(store));
    }
    disk.powerLoss();
    return { states, bytes: disk.image().get('1.metadata')! };
  }

  it('has after a crash what was acknowledged, with the same versions', async () => {
    const store = await open();
    await put(store, 'a', '1');
    await until(events, store.commit({ compare: [], put: [{ key: 'lease', value: 'me', ttlMs: 10 }] }));
    await put(store, 'b', '2');
    await until(events, store.commit({ compare: [], remove: ['b'] }));
    const before = await stateOf(store);
    disk.powerLoss();
    const next = await open();
    expect(await stateOf(next)).toBe(before);
    await put(next, 'b', '3');
    expect((await until(events, next.get('b')))!.version).toBe(5); // Above that of the key that was deleted.
    await pass(events, 20e6);
    expect(await until(events, next.get('lease'))).toBeUndefined();
    disk.powerLoss();
    expect(await until(events, (await open()).get('lease'))).toBeUndefined(); // Its end is durable, too.
  });

  it('begins, torn at any byte, with all transactions before that', async () => {
    const { states, bytes } = await written();
    const [snapshotBytes] = states.keys();
    for (let cut = 0; cut <= bytes.length; cut++) {
      disk.restore(new Map([['1.metadata', bytes.subarray(0, cut)]]));
      const whole = [...states].filter(([length]) => length <= cut).at(-1);
      const store = await open();
      expect(await stateOf(store), `cut at ${cut}`).toBe(whole?.[1] ?? '[]');
      await put(store, 'more', 'x');
      disk.powerLoss();
      expect(await stateOf(await open()), `cut at ${cut}`).toContain('"more"');
    }
    expect(snapshotBytes).toBeLessThan(bytes.length);
  });

  it('refuses damage that is no torn end, at any byte, and leaves it as it is', async () => {
    const { states, bytes } = await written();
    const lastFrame = [...states.keys()].at(-2)!;
    for (let at = 0; at < bytes.length; at++) {
      const rotten = Buffer.from(bytes);
      rotten[at] ^= 0x10;
      disk.restore(new Map([['1.metadata', rotten]]));
      if (at >= lastFrame) {
        expect(await stateOf(await open()), `byte ${at}`).toBe([...states.values()].at(-2));
        continue;
      }
      await expect(open(), `byte ${at}`).rejects.toThrow(/1\.metadata is damaged at byte \d+ \(restore/);
      expect(disk.image().get('1.metadata')!.equals(rotten)).toBe(true);
    }
  });

  it('begins, torn in the middle of a new generation, with the old one, and then with the new one', async () => {
    const store = await open(SMALL);
    let before: Map<string, Buffer>;
    let state: string;
    do {
      before = disk.image();
      await put(store, 'key', 'a value of some length');
      state = await stateOf(store);
    } while (fileNames()[0] === '1.metadata');
    expect(fileNames()).toEqual(['2.metadata']);
    disk.powerLoss();
    const after = disk.image().get('2.metadata')!;
    const old = before.get('1.metadata')!;
    disk.restore(before);
    const stateBefore = await stateOf(await open());
    for (let cut = 0; cut <= after.length; cut++) {
      disk.restore(new Map([['1.metadata', old], ['2.metadata', after.subarray(0, cut)]])); // biome-ignore format: one map
      expect(await stateOf(await open()), `cut at ${cut}`).toBe(cut < after.length ? stateBefore : state);
      expect(fileNames()).toEqual([cut < after.length ? '1.metadata' : '2.metadata']);
    }
    disk.restore(new Map([['2.metadata', after.subarray(0, -1)]]));
    await expect(open()).rejects.toThrow('2.metadata is damaged at byte 0');
  });

  it('has what was acknowledged however often the power fails, and compacts meanwhile', async () => {
    const random = new SeededRandom(3).stream('lives');
    const acknowledged = new Map<string, string>();
    let generation = 0;
    for (let life = 0; life < 60; life++) {
      const store = await open(SMALL);
      for (const [key, value] of acknowledged) {
        const found = (await until(events, store.get(key)))!.value;
        expect(Number(found)).toBeGreaterThanOrEqual(Number(value)); // The last one may have been written without an answer.
      }
      for (let k = 0; k < 5; k++) {
        const key = `key/${random.u32() % 4}`;
        const value = `${life * 10 + k}`;
        await put(store, key, value);
        acknowledged.set(key, value);
      }
      void store.commit({ compare: [], put: [{ key: 'key/0', value: `${life * 10 + 9}` }] }).catch(() => {});
      await pass(events, random.u32() % 300_000);
      disk.powerLoss();
      generation = Number.parseInt(fileNames().at(-1)!, 10);
    }
    expect(generation).toBeGreaterThan(5);
  });

  it('answers nothing any more after a write or a sync that failed', async () => {
    const store = await open();
    await put(store, 'a', '1');
    disk.isSyncFailing = true;
    await expect(put(store, 'a', '2')).rejects.toThrow(/cannot be written: EIO.*restart the manager/);
    disk.isSyncFailing = false;
    await expect(put(store, 'a', '3')).rejects.toThrow(/cannot be written/);
    await expect(store.get('a')).rejects.toThrow(/cannot be written/);
  });

  it('refuses files of another version, and leaves them', async () => {
    const files = new Map([['1.metadata', Buffer.from(`SvM2${'?'.repeat(100)}`)]]);
    disk.restore(files);
    await expect(open()).rejects.toThrow(
      "1.metadata has the format 'SvM2' of another version of rocev2 (use the version",
    );
    expect(fileNames()).toEqual(['1.metadata']);
    // A mark that was torn is none: nothing was promised before the first snapshot was whole.
    disk.restore(new Map([['1.metadata', Buffer.from('SvM\0\0')]]));
    const store = await open();
    expect(await put(store, 'a', '1')).toBeGreaterThan(0);
  });

  it('refuses the folder of somebody else', async () => {
    disk.restore(new Map([['holiday.jpg', Buffer.from('x')]]));
    await expect(open()).rejects.toThrow("the folder is not that of a manager: it has 'holiday.jpg' (name an empty");
    expect(fileNames()).toEqual(['holiday.jpg']);
  });
});
