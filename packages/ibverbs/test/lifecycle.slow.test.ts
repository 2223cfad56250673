/** Programs that fork, that outlive the NIC process, or that run with few rights; and libraries of another version. */

import { execFileSync } from 'node:child_process';
import { createServer, type Socket } from 'node:net';
import { constants } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../../../test/support/eventually.js';
import { MESSAGE_BYTES } from '../src/messages.js';
import { missing, PYTHON, Rig, succeeds } from './rig.js';

const ADDRESS = '127.0.42.4';
const SCRIPT = resolve('packages/ibverbs/test/lifecycle.py');
const HAS_NAMESPACES = succeeds('unshare', '--user', '--map-root-user', '--pid', '--fork', 'true');

describe.skipIf(missing('ibv_devices', 'pyverbs').length > 0)('a program', () => {
  let rig: Rig;
  const start = (command: string, ...args: readonly string[]) => rig.start(ADDRESS, command, ...args);

  beforeAll(async () => {
    rig = await Rig.open(ADDRESS);
  });
  afterEach(() => rig.endPrograms());
  afterAll(() => rig?.close());

  it('that forks keeps its queue pairs, and its child can open the device', async () => {
    expect(await start(PYTHON, SCRIPT, 'fork').ended).toEqual({ code: 0, text: '' });
    await eventually(() => rig.nic(ADDRESS).programs === 0);
    expect(rig.nic(ADDRESS).objects).toBe(0);
  });

  it('gets IBV_EVENT_DEVICE_FATAL and errors when the NIC ends, and uses the next one', async () => {
    const { child, ended, said } = start(PYTHON, SCRIPT, 'restart');
    await said('end the NIC');
    await rig.nic(ADDRESS).close();
    await said('start the NIC');
    await rig.startNic(ADDRESS);
    child.stdin.end('\n');
    expect(await ended).toEqual({ code: 0, text: 'end the NIC\nstart the NIC\n' });
  });

  it('resizes its queues, and posts FLUSH and ATOMIC WRITE', async () => {
    const program = join(rig.folder, 'queues');
    execFileSync('cc', ['-Wall', '-o', program, resolve('packages/ibverbs/test/queues.c'), '-l:libibverbs.so.1']);
    expect(await start('timeout', '60', program).ended).toEqual({ code: 0, text: '' });
    await eventually(() => rig.nic(ADDRESS).programs === 0);
    expect(rig.nic(ADDRESS).objects).toBe(0);
  });

  it('that only polls learns of the end of the NIC', async () => {
    const { ended, said } = start(PYTHON, SCRIPT, 'poll');
    await said('end the NIC');
    await rig.nic(ADDRESS).close();
    expect(await ended).toEqual({ code: 0, text: 'end the NIC\n' });
    await rig.startNic(ADDRESS);
  });

  it('can destroy a channel of events for which one of its threads waits', async () => {
    expect(await start(PYTHON, SCRIPT, 'channel').ended).toEqual({ code: 0, text: '' });
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
    const path = join(rig.folder, 'other.sock');
    await new Promise<void>((listens) => other.listen(path, listens));
    const { text } = await start('env', `ROCEV2_VERBS_SOCKETS=${path}`, 'ibv_devices').ended;
    expect(text).toMatch(/the NIC process has another version: end it and start it again/);
    await new Promise((closed) => other.close(closed));
  });
});
