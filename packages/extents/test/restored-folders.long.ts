/** Real processes: the steps of docs/how-to/back-up-and-restore.md for clusters, in their order, in an empty folder. */

import { cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { isBuilt, type Program, rocev2Starter } from '../../../test/e2e/executable.js';
import { eventually } from '../../../test/support/eventually.js';
import { ClusterCommands } from './cluster-commands.js';

const LIMIT_MS = 600_000;
const NODES = [1, 2, 3, 4];
const JOURNALED = 4;

describe.runIf(isBuilt)('a cluster of processes whose folders are restored', () => {
  const start = rocev2Starter();
  const running = new Map<string, Program>();
  let folder: string;
  let port: string;
  let cluster: ClusterCommands;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'rocev2-restored-'));
    port = '0';
    cluster = new ClusterCommands(start, folder, () => `127.0.0.1:${port}`);
    running.clear();
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));
  const path = (name: string) => join(folder, name);

  function copy(from: string, to: string): void {
    rmSync(path(to), { recursive: true, force: true });
    cpSync(path(from), path(to), { recursive: true });
  }

  async function startManager(...options: string[]): Promise<void> {
    const place = ['--dir', path('manager'), '-p', port, '--extent-size', '1MiB'];
    const manager = start('extents', 'manager', ...place, ...options);
    [, port] = await manager.writes('stderr', /listening on .*:(\d+)/);
    await manager.writes('stderr', /Ctrl-C ends it/);
    running.set('manager', manager);
  }

  function beginNode(k: number, ...options: string[]): Program {
    const node = start('extents', 'node', '--dir', path(`node${k}`), '--join', `127.0.0.1:${port}`, ...options);
    running.set(`node${k}`, node);
    return node;
  }

  async function startNode(k: number, ...options: string[]): Promise<string> {
    const node = beginNode(k, ...options);
    const [, number] = await node.writes('stderr', /node (\d+) of cluster/);
    await node.writes('stderr', /Ctrl-C ends it/);
    return number;
  }

  async function end(what: string, signal: NodeJS.Signals = 'SIGINT'): Promise<void> {
    running.get(what)!.kill(signal);
    await running.get(what)!.ended();
  }

  const files = () => NODES.flatMap((k) => readdirSync(path(`node${k}`)).filter((name) => name.endsWith('.extent')));
  const journal = () => ['--journal', path('journal'), '--journal-size', '1MiB'];

  it(
    'deletes nothing, says what is older, and is whole again after what the page says',
    async () => {
      await startManager();
      await Promise.all(NODES.map((k) => startNode(k, ...(k === JOURNALED ? journal() : []))));
      let content = await cluster.append('a');

      // A backup of the metadata is older than what nodes have seen.
      await end('manager');
      copy('manager', 'backup');
      await startManager();
      content += await cluster.append('b');
      const before = files();
      await end('manager', 'SIGKILL');
      copy('backup', 'manager');
      await startManager();
      await running.get('manager')!.writes('stderr', /the metadata is an older copy/);
      const refused = await cluster.run('read', 'log');
      expect(refused.exit).not.toBe(0);
      expect(refused.stderr).toMatch(/older copy.*extents recover/);
      expect((await cluster.run('status')).stdout).toMatch(/all requests are refused: the metadata is an older copy/);
      expect(files()).toEqual(before);
      expect(await cluster.run('recover')).toMatchObject({ exit: 0 });
      await cluster.expectContent(content);

      // All copies of the metadata are lost.
      await end('manager', 'SIGKILL');
      rmSync(path('manager'), { recursive: true });
      await startManager('--recover');
      const known = async () =>
        (await cluster.status()).nodes.filter(({ state }: { state: string }) => state === 'up').length;
      await eventually(async () => (await known()) === NODES.length, { limitMs: LIMIT_MS, everyMs: 500 });
      expect(await cluster.run('recover')).toMatchObject({ exit: 0 });
      await cluster.expectContent(content);

      // The folder of a node comes back as it was before its last start.
      await end('node1');
      copy('node1', 'copy');
      await startNode(1);
      await end('node1');
      copy('copy', 'node1');
      const outdated = beginNode(1);
      expect(await outdated.ended()).toBe(1);
      expect(outdated.stderr).toMatch(/the folder of node \d+ is an older copy/);
      expect((await cluster.run('status')).stdout).toMatch(/^the folder of node \d+ is an older copy/m);
      rmSync(path('node1'), { recursive: true });
      expect(Number(await startNode(1))).toBeGreaterThan(NODES.length);

      // A copy of a folder is started in another place while its node runs.
      await end('node2');
      copy('node2', 'copy');
      const number = await startNode(2);
      const elsewhere = start('extents', 'node', '--dir', path('copy'), '--join', `127.0.0.1:${port}`);
      expect(await elsewhere.ended()).toBe(1);
      expect(elsewhere.stderr).toMatch(/runs with the folder 127\.0\.0\.1:.*node2|is an older copy/);
      const listed = (await cluster.run('status')).stdout;
      expect(listed).toMatch(
        /^a copy of the folder of node \d+ was refused at 127\.0\.0\.1:\S*copy; its own folder is \S*node2: /m,
      );
      expect(listed).not.toMatch(new RegExp(`^the folder of node ${number} is an older copy`, 'm'));

      // A node was killed, and is started without its journal.
      await end(`node${JOURNALED}`, 'SIGKILL');
      expect(await beginNode(JOURNALED).ended()).toBe(1);
      expect((await cluster.run('status')).stdout).toMatch(/^node \d+ does not start: .*name its journal/m);
      await startNode(JOURNALED, ...journal());
      expect((await cluster.run('status')).stdout).not.toMatch(/does not start/);
      const isWhole = async () => (await cluster.status()).extents.underReplicated === 0;
      await eventually(isWhole, { limitMs: LIMIT_MS, everyMs: 500 });
      await cluster.expectContent(content);

      // A stream was deleted by mistake.
      expect(await cluster.run('rm', 'log')).toMatchObject({ exit: 0 });
      expect((await cluster.run('read', 'log')).exit).not.toBe(0);
      expect(await cluster.run('undelete', 'log')).toMatchObject({ exit: 0 });
      await cluster.expectContent(content);
      content += await cluster.append('c');
      await cluster.expectContent(content);
      for (const what of running.keys()) await end(what);
    },
    LIMIT_MS,
  );
});
