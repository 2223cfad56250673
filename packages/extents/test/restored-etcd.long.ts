/** Real processes: an etcd is restored from a snapshot, as docs/how-to/back-up-and-restore.md shows. */

import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isBuilt, type Program, rocev2Starter } from '../../../test/e2e/executable.js';
import { eventually } from '../../../test/support/eventually.js';
import { ClusterCommands } from './cluster-commands.js';
import { EtcdMembers, WHY_NO_ETCDCTL } from './etcd-members.js';

const LIMIT_MS = 400_000;
const NODES = 3;

if (WHY_NO_ETCDCTL !== undefined) console.warn(`skipped: an etcd that is restored: ${WHY_NO_ETCDCTL}`);

describe.skipIf(WHY_NO_ETCDCTL !== undefined || !isBuilt)('two managers and three nodes over an etcd', () => {
  const start = rocev2Starter();
  let folder: string;
  let etcd: EtcdMembers;
  let up: Program;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'rocev2-restored-etcd-'));
    etcd = await EtcdMembers.start(join(folder, 'etcd'), 1);
  });
  afterAll(async () => {
    await etcd.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const managers = () => [...up.stderr.matchAll(/manager \d is at (\S+),/g)].map(([, place]) => place).join();
  const cluster = () => new ClusterCommands(start, folder, managers);
  const store = () => ['--metadata', `etcd:${etcd.endpoints[0]}`];
  const startUp = () => {
    const of = ['--dir', join(folder, 'c'), '--nodes', `${NODES}`, '--extent-size', '1MiB', '-p', '0'];
    up = start('extents', 'up', ...of, '--managers', '2', ...store());
  };
  const files = () =>
    Array.from({ length: NODES }, (_, k) => readdirSync(join(folder, 'c', `node${k + 1}`)).filter(isExtent)).flat();
  const isExtent = (name: string) => name.endsWith('.extent');

  async function expectRefusal(): Promise<void> {
    const state = async () => (await cluster().run('status')).stdout;
    await eventually(async () => /all requests are refused: the metadata is an older copy/.test(await state()), {
      limitMs: LIMIT_MS,
      everyMs: 500,
    });
    const refused = await cluster().run('read', 'log');
    expect(refused.exit).not.toBe(0);
    expect(refused.stderr).toMatch(/older copy.*extents recover/);
  }

  it(
    'stop after the restore, delete nothing, and are whole again after recover',
    async () => {
      const snapshot = join(folder, 'etcd.db');
      startUp();
      await up.writes('stderr', /Ctrl-C ends it/);
      let content = await cluster().append('a');
      etcd.snapshot(snapshot);
      content += await cluster().append('b');
      const before = files();

      // While the leader has its lease.
      await etcd.restore(join(folder, 'restored'), snapshot);
      await expectRefusal();
      expect(files()).toEqual(before);
      expect(await cluster().run('recover')).toMatchObject({ exit: 0 });
      await cluster().expectContent(content);

      // All processes have ended; then one command starts them.
      up.kill('SIGINT');
      expect(await up.ended(), up.stderr).toBe(0);
      await etcd.restore(join(folder, 'restored again'), snapshot);
      startUp();
      await up.writes('stderr', /manager 2 is at/);
      await expectRefusal();
      await up.writes('stderr', /the metadata is an older copy/);
      const report = await cluster().run('recover', '--json');
      expect(JSON.parse(report.stdout)).toMatchObject({ missing: [], unknown: [], silent: [] });
      await up.writes('stderr', /Ctrl-C ends it/);
      expect(files()).toEqual(before);
      await cluster().expectContent(content);

      // The etcd and its snapshots are lost.
      up.kill('SIGINT');
      expect(await up.ended(), up.stderr).toBe(0);
      await etcd.restore(join(folder, 'empty'));
      const manager = start('extents', 'manager', '--recover', '-p', '0', ...store());
      const [, place] = await manager.writes('stderr', /listening on (\S+)/);
      const nodes = Array.from({ length: NODES }, (_, k) =>
        start('extents', 'node', '--dir', join(folder, 'c', `node${k + 1}`), '--join', place),
      );
      await Promise.all(nodes.map((node) => node.writes('stderr', /Ctrl-C ends it/)));
      const recovered = new ClusterCommands(start, folder, () => place);
      expect(await recovered.run('recover')).toMatchObject({ exit: 0 });
      await recovered.expectContent(content);
    },
    LIMIT_MS,
  );
});
