/** A real etcd: as a store of metadata, and under three managers and four nodes as processes, of which the leading ones are killed while a stream is appended. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises'; // timer: times to live of etcd are seconds of the system
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { SYSTEM_CLOCK } from '../../src/driver/system-clock.js';
import { type ExtentsClient, openExtents } from '../../src/extents/index.js';
import { EtcdMetadata } from '../../src/extents/live/etcd-metadata.js';
import type { RdmaDevice } from '../../src/verbs/device.js';
import { openDevice } from '../../src/verbs/open-device.js';
import { metadataContract } from '../contracts/metadata-contract.js';
import { isBuilt, Program } from '../e2e/executable.js';
import { eventually } from '../support/eventually.js';
import { EtcdMembers, freePort, WHY_NO_ETCD } from './etcd-members.js';

const LIMIT_MS = 120_000;
const MANAGERS = 3;
const NODES = 4;

if (WHY_NO_ETCD !== undefined) console.warn(`skipped: metadata in etcd: ${WHY_NO_ETCD}`);

describe.skipIf(WHY_NO_ETCD !== undefined)('one member', () => {
  let folder: string;
  let etcd: EtcdMembers;
  let prefixes = 0;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'rocev2-etcd-'));
    etcd = await EtcdMembers.start(folder, 1);
  });
  afterAll(async () => {
    await etcd.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const open = (endpoints: readonly string[] = etcd.endpoints) =>
    new EtcdMetadata(SYSTEM_CLOCK, { endpoints, prefix: `test${prefixes++}/` });

  // timer: a limit of what is shortest in etcd, two seconds.
  metadataContract(
    'metadata in etcd',
    async () => ({ metadata: open(), settled: (work) => work, pass: (ms) => pause(ms) }),
    2000,
  );

  it('goes on to the next member where the first is not there', async () => {
    const metadata = open([`http://127.0.0.1:${await freePort()}`, ...etcd.endpoints]);
    expect(await metadata.commit({ compare: [], put: [{ key: 'a', value: '1' }] })).toBeGreaterThan(0);
    expect((await metadata.get('a'))?.value).toBe('1');
    await metadata.close();
  });

  it('says where nobody answers', async () => {
    const metadata = open([`http://127.0.0.1:${await freePort()}`]);
    await expect(metadata.get('a')).rejects.toThrow(/etcd does not answer at http:\/\/127.0.0.1:\d+: .*ECONNREFUSED/);
    await metadata.close();
  });

  it('lists more keys than one answer has', async () => {
    const metadata = open();
    const keys = Array.from({ length: 1050 }, (_, k) => `many/${String(k).padStart(5, '0')}`);
    for (let k = 0; k < keys.length; k += 100)
      await metadata.commit({ compare: [], put: keys.slice(k, k + 100).map((key) => ({ key, value: key })) });
    expect((await metadata.list('many/')).map(({ key }) => key)).toEqual(keys);
    await metadata.close();
  });
});

describe.skipIf(WHY_NO_ETCD !== undefined || !isBuilt)('three managers over three members', () => {
  let folder: string;
  let etcd: EtcdMembers;
  let device: RdmaDevice;
  let client: ExtentsClient;
  const programs: Program[] = [];

  afterEach(async () => {
    await client?.close();
    await device?.close();
    for (const program of programs) program.kill('SIGKILL');
    await Promise.all(programs.map((program) => program.ended()));
    await etcd.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  function started(...args: string[]): Program {
    const program = Program.rocev2('extents', ...args);
    programs.push(program);
    return program;
  }

  it(
    'lose no acknowledged record when the leading manager is killed, and the leader of etcd',
    async () => {
      folder = mkdtempSync(join(tmpdir(), 'rocev2-managers-'));
      etcd = await EtcdMembers.start(join(folder, 'etcd'), 3);
      const store = `etcd:${etcd.endpoints.join()}`;
      const managers = Array.from({ length: MANAGERS }, () =>
        started('manager', '--metadata', store, '-p', '0', '--extent-size', '1MiB'),
      );
      const addresses = await Promise.all(
        managers.map(async (program) => (await program.writes('stderr', /listening on (\S+)/))[1]),
      );
      const join_ = addresses.join();
      const nodes = Array.from({ length: NODES }, (_, k) =>
        started('node', '--dir', join(folder, `node${k}`), '--join', join_),
      );
      await Promise.all(nodes.map((node) => node.writes('stderr', /Ctrl-C ends it/)));
      device = await openDevice({ address: '127.0.0.1', udpPort: 0 });
      client = await openExtents({ device, manager: join_ });
      await client.createStream('log');
      const writer = await client.openStream('log');
      const acknowledged: Buffer[] = [];
      let isOver = false;
      const appending = (async () => {
        for (let k = 0; !isOver; k++) {
          const record = Buffer.alloc(100_000 + k, k & 0xff);
          await writer.append(record);
          acknowledged.push(record);
        }
      })();
      const more = (count: number) => {
        const until = acknowledged.length + count;
        return eventually(() => acknowledged.length >= until, { limitMs: LIMIT_MS, everyMs: 20 });
      };
      const leading = async () => (await client.status()).managers.find(({ leads }) => leads)!.address;

      // Each time an extent is full, so that a manager has to open another one.
      await more(15);
      const first = await leading();
      managers[addresses.indexOf(first)].kill('SIGKILL');
      await more(15);
      const second = await leading();
      expect(second).not.toBe(first);
      await etcd.kill((await etcd.leader())!);
      await more(15);
      nodes[writer.extent!.replicas[0].node - 1].kill('SIGKILL'); // Numbers may be those of other folders: any one will do.
      await more(15);
      isOver = true;
      await appending;
      await writer.close();

      let count = 0;
      for await (const { data } of client.read('log')) {
        expect(data.equals(acknowledged[count]), `record ${count}`).toBe(true);
        count++;
      }
      expect(count).toBe(acknowledged.length);
      const status = await client.status();
      expect(status.managers.map(({ leads }) => leads)).toEqual([true, false]);
      expect(status.nodes.length).toBe(NODES);
    },
    LIMIT_MS,
  );
});
