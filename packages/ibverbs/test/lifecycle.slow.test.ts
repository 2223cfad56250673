/** Programs that fork, that outlive the NIC process, or that run with few rights; and libraries of another version. */

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { constants, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../../../test/support/eventually.js';
import { shimLibrary } from '../src/library.js';
import { MESSAGE_BYTES } from '../src/messages.js';
import { NicServer } from '../src/nic-server.js';

const ADDRESS = '127.0.42.4';
const PYTHON = '/usr/bin/python3';
const SCRIPT = resolve('packages/ibverbs/test/lifecycle.py');
const HAS_PYVERBS =
  succeeds(PYTHON, '-c', 'import pyverbs.device') && succeeds('sh', '-c', 'command -v cc ibv_devices');
const HAS_NAMESPACES = succeeds('unshare', '--user', '--map-root-user', '--pid', '--fork', 'true');
if (!HAS_PYVERBS) console.log('skipped: pyverbs, ibv_devices or a compiler is not installed');

function succeeds(command: string, ...args: readonly string[]): boolean {
  try {
    execFileSync(command, args, { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

describe.skipIf(!HAS_PYVERBS)('a program', () => {
  const folder = mkdtempSync(join(tmpdir(), 'rocev2-lifecycle-'));
  const socket = join(folder, 'nic.sock');
  const children: ChildProcess[] = [];
  let library = '';
  let nic: NicServer;

  beforeAll(async () => {
    library = await shimLibrary({ ...process.env, XDG_CACHE_HOME: folder });
    nic = await NicServer.open(socket, { address: ADDRESS });
  });

  afterEach(() => {
    for (const child of children.splice(0)) child.kill('SIGKILL');
  });

  afterAll(async () => {
    await nic?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  function start(command: string, ...args: readonly string[]) {
    const env = { ...process.env, LD_PRELOAD: library, ROCEV2_VERBS_SOCKETS: socket };
    const child = spawn(command, args, { env, stdio: ['pipe', 'pipe', 'pipe'] });
    children.push(child);
    let text = '';
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (more) => (text += more));
    const ended = once(child, 'close').then(([code]) => ({ code, text }));
    const said = (line: string) => eventually(() => text.includes(line) || child.exitCode !== null);
    return { child, ended, said };
  }

  it('that forks keeps its queue pairs, and its child can open the device', async () => {
    expect(await start(PYTHON, SCRIPT, 'fork').ended).toEqual({ code: 0, text: '' });
    await eventually(() => nic.programs === 0);
    expect(nic.objects).toBe(0);
  });

  it('gets IBV_EVENT_DEVICE_FATAL and errors when the NIC ends, and uses the next one', async () => {
    const { child, ended, said } = start(PYTHON, SCRIPT, 'restart');
    await said('end the NIC');
    await nic.close();
    await said('start the NIC');
    nic = await NicServer.open(socket, { address: ADDRESS });
    child.stdin.end('\n');
    expect(await ended).toEqual({ code: 0, text: 'end the NIC\nstart the NIC\n' });
  });

  it('that only polls learns of the end of the NIC', async () => {
    const { ended, said } = start(PYTHON, SCRIPT, 'poll');
    await said('end the NIC');
    await nic.close();
    expect(await ended).toEqual({ code: 0, text: 'end the NIC\n' });
    nic = await NicServer.open(socket, { address: ADDRESS });
  });

  it('needs no locked memory', async () => {
    expect(await start('sh', '-c', `ulimit -l 0 && exec ${PYTHON} ${SCRIPT} fork`).ended).toEqual({
      code: 0,
      text: '',
    });
  });

  it.skipIf(!HAS_NAMESPACES)('can run in a PID namespace below that of the NIC', async () => {
    const inside = ['--user', '--map-root-user', '--pid', '--fork', PYTHON, SCRIPT, 'fork'];
    expect(await start('unshare', ...inside).ended).toEqual({ code: 0, text: '' });
  });

  it('of another version is refused with what to do', async () => {
    const answers = (connection: Socket) => {
      const refusal = Buffer.alloc(MESSAGE_BYTES);
      refusal.writeUInt32LE(constants.errno.EPROTO, 0);
      connection.on('error', () => {}).once('data', () => connection.end(refusal));
    };
    const other = createServer(answers);
    const path = join(folder, 'other.sock');
    await new Promise<void>((listens) => other.listen(path, listens));
    const { text } = await start('env', `ROCEV2_VERBS_SOCKETS=${path}`, 'ibv_devices').ended;
    expect(text).toMatch(/the NIC process has another version: end it and start it again/);
    await new Promise((closed) => other.close(closed));
  });
});
