import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { KvDemoResult } from '../../packages/kv/src/commands/demo/run.js';
import { documentOf } from '../support/documents.js';
import { eventually } from '../support/eventually.js';
import { childrenOf, isAlive, isBuilt, isLinux, type Program, rocev2Starter } from './executable.js';

const SECOND_NS = 1e9;

describe.skipIf(!isBuilt || !isLinux)('rocev2 kv demo', () => {
  const rocev2 = rocev2Starter();
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'rocev2-kv-demo-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  /** The owner, and the readers that are processes. */
  async function childrenOnceStarted({ process: { pid } }: Program): Promise<number[]> {
    await eventually(() => childrenOf(pid!).length >= 3);
    return childrenOf(pid!);
  }

  it('shows that the owner answers READs while it computes, and nothing else', async () => {
    const html = join(folder, 'demo.html');
    const demo = rocev2('kv', 'demo', '-D', '4', '--json', '--html', html);
    const children = await childrenOnceStarted(demo);
    expect(await demo.ended(), demo.stderr).toBe(0);
    const { readers } = documentOf('kv-demo', demo.stdout) as unknown as KvDemoResult;
    const [kv, net, ipc] = ['rocev2/kv', 'node:net', 'cluster IPC'].map((name) =>
      readers.find((reader) => reader.name === name),
    );
    // The owner computes for two seconds: whoever asks it in the first of them waits for more than one.
    for (const asked of [net, ipc]) expect(asked!.whileBusy.maxNs).toBeGreaterThan(SECOND_NS);
    expect(kv!.whileBusy.p50Ns).toBeLessThan(SECOND_NS / 2);
    expect(kv!.whileBusy.count).toBeGreaterThan(100);
    const page = readFileSync(html, 'utf8');
    for (const words of ['<svg', 'the owner computes', ...readers.map(({ name }) => name)])
      expect(page).toContain(words);
    expect(children.filter(isAlive)).toEqual([]);
  });

  it('ends at Ctrl-C, with all that it has started', async () => {
    const demo = rocev2('kv', 'demo');
    const children = await childrenOnceStarted(demo);
    demo.kill('SIGINT');
    expect(await demo.ended()).toBe(130);
    await eventually(() => children.filter(isAlive).length === 0);
  });
});
