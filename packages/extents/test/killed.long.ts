/** Real processes and files: nodes are killed, restarted and emptied, and the manager is killed, while a stream is appended and read. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { randomInt, SeededRandom } from '../../../src/core/random.js';
import type { RdmaDevice } from '../../../src/verbs/device.js';
import { openDevice } from '../../../src/verbs/open-device.js';
import { isAlive, isBuilt, isLinux, Program } from '../../../test/e2e/executable.js';
import { eventually } from '../../../test/support/eventually.js';
import { LINE_START } from '../../../test/support/log-line.js';
import { type ExtentsClient, openExtents } from '../src/index.js';
import { Appender, expectRecords } from './appender.js';

const NODES = 5;
const LIMIT_MS = 240_000;
/** Short extents, so that there is something to copy. */
const EXTENT = '1MiB';

describe.runIf(isBuilt && isLinux)('a cluster of processes', () => {
  const random = new SeededRandom(20).stream('records');
  let folder: string;
  let device: RdmaDevice;
  let client: ExtentsClient;
  let up: Program;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'rocev2-killed-'));
  });

  async function start(...options: string[]): Promise<void> {
    up = Program.rocev2('extents', 'up', '--dir', folder, '-p', '0', '--extent-size', EXTENT, ...options);
    await up.writes('stderr', /Ctrl-C ends it/);
    device = await openDevice({ address: '127.0.0.1', udpPort: 0 });
    client = await openExtents({ device, manager: managerText() });
  }

  afterEach(async () => {
    await client.close();
    await device.close();
    up.kill('SIGINT');
    await up.ended();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Process of the manager, or of the node in a folder, as it runs now. */
  function processOf(what: string): number {
    const place = what === 'manager' ? 'the manager is at .*' : `node .*/${what}`;
    return Number([...up.stderr.matchAll(new RegExp(`${LINE_START}${place}, process (\\d+)$`, 'gm'))].at(-1)![1]);
  }

  /** Kills a process, and waits until another one is in its place. */
  async function killed(what: string, meanwhile = () => {}): Promise<void> {
    const before = processOf(what);
    process.kill(before, 'SIGKILL');
    meanwhile();
    await eventually(() => processOf(what) !== before, { limitMs: LIMIT_MS, everyMs: 100 });
  }

  async function isWhole(): Promise<boolean> {
    const { nodes, extents } = await client.status();
    const isUp = nodes.filter(({ state }) => state === 'up').length === NODES;
    return isUp && extents.underReplicated === 0 && extents.copying === 0;
  }

  const whole = () => eventually(() => isWhole().catch(() => false), { limitMs: LIMIT_MS, everyMs: 200 });

  it(
    'loses no acknowledged record, and restores redundancy by itself',
    async () => {
      await start('--nodes', String(NODES), '--restart');
      await client.createStream('log');
      const writer = await client.openStream('log');
      const appender = new Appender(writer, (number) => {
        const record = Buffer.alloc(randomInt(random, 1, 150_000), randomInt(random, 0, 255));
        record.writeUInt8(number & 0xff);
        return record;
      });
      const { acknowledged } = appender;
      const more = (count: number) => appender.more(count, LIMIT_MS);
      /** All that had been acknowledged before the call is read, with its bytes and in order. */
      const check = async () => {
        const expected = acknowledged.length;
        let count = 0;
        for await (const { data } of client.read('log')) {
          if (count < acknowledged.length) expect(data.equals(acknowledged[count]), `record ${count}`).toBe(true);
          count++;
        }
        // Of the open extent the last record is known to be on all replicas with the next append.
        expect(count).toBeGreaterThanOrEqual(expected - 1);
      };

      await more(30);
      await killed(`node${writer.extent!.replicas[0].node}`); // The one that orders the appends: numbers are as those of folders at first.
      await more(30);
      await check();
      await killed('manager');
      await more(30);
      await whole();
      const { replicas } = (await client.extents('log'))[0];
      const emptied = `node${replicas[0].node}`;
      await killed(emptied, () => rmSync(join(folder, emptied), { recursive: true }));
      expect(up.stderr).toMatch(new RegExp(`${LINE_START}node ${NODES + 1} is at .*/${emptied},`, 'm')); // Another node, which is filled again.
      await more(30);
      await whole();
      await appender.end();
      await expectRecords(client, 'log', acknowledged);
      expect(acknowledged.length).toBeGreaterThan(90);
      expect(writer.counters.appends).toBe(acknowledged.length);
    },
    LIMIT_MS,
  );

  it(
    'whose nodes have journals loses no acknowledged record when all of them are killed at once',
    async () => {
      await start('--nodes', '3', '--restart', '--journal', join(folder, 'journals'), '--journal-size', '1MiB');
      await client.createStream('log');
      const writer = await client.openStream('log');
      const appender = new Appender(writer, (number) => Buffer.alloc(randomInt(random, 1, 50_000), number & 0xff));
      for (let round = 0; round < 3; round++) {
        await appender.more(40, LIMIT_MS);
        if (round === 1)
          expect((await client.status()).nodes.every(({ journal }) => journal?.bytes === 1_044_480)).toBe(true);
        await Promise.all(['node1', 'node2', 'node3'].map((what) => killed(what)));
      }
      await appender.more(10, LIMIT_MS);
      await appender.end();
      await expectRecords(client, 'log', appender.acknowledged);
      // Without its journal a node that was killed is refused, in words.
      const victim = processOf('node1');
      up.kill('SIGKILL');
      await up.ended();
      await eventually(() => !isAlive(victim), { limitMs: LIMIT_MS, everyMs: 20 });
      const bare = Program.rocev2('extents', 'node', '--dir', join(folder, 'node1'), '--join', '127.0.0.1:1');
      await bare.writes('stderr', /node 1 had a journal and was not ended in order/);
      await bare.ended();
    },
    LIMIT_MS,
  );

  it(
    'that codes its extents reads everything without any three of nine nodes, and fills an empty one in their place',
    async () => {
      await start('--code', 'rs-6-3', '--code-after', '100ms');
      await client.createStream('log');
      const writer = await client.openStream('log');
      const records = Array.from({ length: 30 }, (_, k) => Buffer.alloc(randomInt(random, 1, 300_000), k + 1));
      await Promise.all(records.map((record) => writer.append(record)));
      await writer.close();
      const isCoded = async () => {
        const { extents } = await client.status();
        return extents.sealed > 2 && extents.coded === extents.sealed && extents.underReplicated === 0;
      };
      await eventually(() => isCoded().catch(() => false), { limitMs: LIMIT_MS, everyMs: 100 });
      const folders = Array.from({ length: 9 }, (_, k) => `node${k + 1}`);
      const gone = Array.from({ length: 3 }, () => folders.splice(randomInt(random, 0, folders.length - 1), 1)[0]);
      for (const what of gone) process.kill(processOf(what), 'SIGKILL');
      const read: Buffer[] = [];
      for await (const { data } of client.read('log')) read.push(Buffer.from(data));
      expect(read.length).toBe(records.length);
      expect(records.findIndex((record, k) => !record.equals(read[k]))).toBe(-1);
      expect(client.counters().reconstructed).toBeGreaterThan(0);
      const { extents } = await client.status();
      expect(extents.unavailable).toBe(0);
      const before = (await client.status()).counters.rebuilds;
      const another = Program.rocev2('extents', 'node', '--dir', join(folder, 'another'), '--join', managerText());
      await eventually(async () => (await client.status()).counters.rebuilds > before, {
        limitMs: LIMIT_MS,
        everyMs: 100,
      });
      another.kill('SIGINT');
      await another.ended();
    },
    LIMIT_MS,
  );

  function managerText(): string {
    return /the manager is at (\S+),/.exec(up.stderr)![1];
  }
});
