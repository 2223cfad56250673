/**
 * The tests of rdma-core (pyverbs) run on our NIC. `pyverbs-passing.txt` lists those that pass; it only grows. With
 * PYVERBS_LIST=1 this test adds those that pass now.
 */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { shimLibrary } from '../src/library.js';
import { NicServer } from '../src/nic-server.js';
import { missing, PYTHON } from './rig.js';

const ADDRESS = '127.0.42.3';
const LIST = 'packages/ibverbs/test/pyverbs-passing.txt';
const DOCUMENTATION = 'usr/share/doc/rdma-core/tests';
const SOURCES = ['/', '.cache/rdma-core/'].map((root) => join(root, DOCUMENTATION)).find((path) => existsSync(path));
/** Those of one module take seconds on an idle machine. */
const MODULE_SECONDS = 300;
const MISSING = missing('pyverbs');
if (SOURCES === undefined) console.log('skipped: the tests of rdma-core are not installed');

/** Names in the output of unittest: `test_a (tests.module.Class.test_a)`, then perhaps a description, then `... ok`. */
function passedIn(text: string): string[] {
  const passed: string[] = [];
  let name = '';
  let hasResult = true;
  for (const line of text.split('\n')) {
    const found = /^\w+ \(tests\.([\w.]+)\)/.exec(line);
    if (found !== null) [name, hasResult] = [found[1], false];
    if (hasResult || !/(^|\.\.\. )(ok|FAIL|ERROR|skipped)\b/.test(line)) continue;
    hasResult = true;
    if (/(^|\.\.\. )ok$/.test(line)) passed.push(name);
  }
  return passed;
}

const listed = readFileSync(LIST, 'utf8').split('\n').filter(Boolean);
const modules = [...new Set(listed.map((name) => name.split('.')[0]))];

describe.skipIf(MISSING.length > 0 || SOURCES === undefined)('tests of rdma-core', () => {
  const folder = mkdtempSync(join(tmpdir(), 'rocev2-pyverbs-'));
  const tests = join(folder, 'tests');
  const socket = join(folder, 'nic.sock');
  const passing = new Set<string>();
  let nic: NicServer;
  let library = '';

  beforeAll(async () => {
    cpSync(SOURCES!, tests, { recursive: true });
    for (const name of readdirSync(tests)) {
      const path = join(tests, name);
      if (name.endsWith('.gz')) writeFileSync(path.slice(0, -3), gunzipSync(readFileSync(path)));
      if (/^test_/.test(name) && !modules.some((module) => name.startsWith(`${module}.py`))) {
        rmSync(path.replace(/\.gz$/, ''), { force: true });
      }
    }
    // They use the first address of the interface of the device.
    const address = JSON.stringify([{ address: '00:00:00:00:00:00', addr_info: [{ local: ADDRESS }] }]);
    writeFileSync(join(folder, 'ip'), `#!/bin/sh\necho '${address}'\n`);
    chmodSync(join(folder, 'ip'), 0o755);
    library = await shimLibrary({ ...process.env, XDG_CACHE_HOME: folder });
    nic = await NicServer.open(socket, { address: ADDRESS });
  });

  afterAll(async () => {
    await nic?.close();
    rmSync(folder, { recursive: true, force: true });
    const names = [...new Set([...listed, ...passing])].sort();
    if (process.env['PYVERBS_LIST'] === '1') writeFileSync(LIST, `${names.join('\n')}\n`);
  });

  async function passingOf(module: string): Promise<{ passed: string[]; text: string }> {
    const path = `${folder}:${process.env['PATH']}`;
    const env = { ...process.env, PATH: path, LD_PRELOAD: library, ROCEV2_VERBS_SOCKETS: socket };
    const args = ['-k', '5', String(MODULE_SECONDS), PYTHON, '-B', 'run_tests.py', '-v', `tests.${module}`];
    const child = spawn('timeout', args, { cwd: tests, env, stdio: ['ignore', 'ignore', 'pipe'] });
    let text = '';
    child.stderr.setEncoding('utf8').on('data', (more) => (text += more));
    await once(child, 'close');
    return { passed: passedIn(text), text };
  }

  it.each(modules)('%s', { timeout: 2 * MODULE_SECONDS * 1000 }, async (module) => {
    const { passed, text } = await passingOf(module);
    for (const name of passed) passing.add(name);
    expect(
      listed.filter((name) => name.startsWith(`${module}.`) && !passed.includes(name)),
      text,
    ).toEqual([]);
    expect(nic.objects, 'objects that are left').toBe(0);
  });
});
