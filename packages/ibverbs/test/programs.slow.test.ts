/** Stock programs of libibverbs, librdmacm and perftest on two NICs of this process, and what is left of a program that was killed. */

import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../../../test/support/eventually.js';
import { freePort } from '../../../test/support/free-port.js';
import { shimLibrary } from '../src/library.js';
import { NicServer } from '../src/nic-server.js';

const SERVER = '127.0.42.1';
const CLIENT = '127.0.42.2';
const MISSING = ['cc', 'ibv_devinfo', 'ib_write_bw', 'rping'].filter((program) => !isInstalled(program));
if (MISSING.length > 0) console.log(`skipped: ${MISSING.join(', ')} not installed`);

function isInstalled(program: string): boolean {
  try {
    execFileSync('sh', ['-c', `command -v ${program}`], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** Whether something listens on a TCP port of any address; a connection would be taken for a client. */
function listens(port: number): boolean {
  const hex = port.toString(16).toUpperCase().padStart(4, '0');
  const tables = ['/proc/net/tcp', '/proc/net/tcp6'].map((path) => readFileSync(path, 'utf8'));
  return tables.some((text) => new RegExp(`:${hex} [0-9A-F]+:0000 0A `).test(text));
}

describe.skipIf(MISSING.length > 0)('stock programs', () => {
  const folder = mkdtempSync(join(tmpdir(), 'rocev2-verbs-test-'));
  const children: ChildProcess[] = [];
  let library = '';
  let server: NicServer;
  let client: NicServer;

  beforeAll(async () => {
    library = await shimLibrary({ ...process.env, XDG_CACHE_HOME: folder });
    server = await NicServer.open(join(folder, 'server.sock'), { address: SERVER });
    client = await NicServer.open(join(folder, 'client.sock'), { address: CLIENT });
  });

  afterEach(async () => {
    for (const child of children.splice(0)) child.kill('SIGKILL');
    await eventually(() => server.programs + client.programs === 0);
  });

  afterAll(async () => {
    await server?.close();
    await client?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  function start(nic: 'server' | 'client', command: string, args: readonly string[]) {
    const env = { ...process.env, LD_PRELOAD: library, ROCEV2_VERBS_SOCKETS: join(folder, `${nic}.sock`) };
    const child = spawn(command, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
    children.push(child);
    let text = '';
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (more) => (text += more));
    const ended = once(child, 'close').then(([code]) => ({ code, text }));
    return { child, ended };
  }

  /** Runs both ends to their end. */
  async function pair(command: string, ...args: string[]): Promise<string> {
    const port = await freePort();
    const common = [...args, '-p', String(port)];
    const first = start('server', command, common);
    await eventually(() => listens(port) || first.child.exitCode !== null);
    const second = start('client', command, [...common, '127.0.0.1']);
    const [a, b] = await Promise.all([first.ended, second.ended]);
    expect(`${a.text}${b.text}`).not.toMatch(/error|fail/i);
    expect([a.code, b.code], b.text).toEqual([0, 0]);
    return b.text;
  }

  it('ibv_devinfo shows an active port and the GID of the address', async () => {
    const { code, text } = await start('client', 'ibv_devinfo', ['-v']).ended;
    expect(code, text).toBe(0);
    expect(text).toMatch(/hca_id:\s+rocev2_0/);
    expect(text).toContain('PORT_ACTIVE');
    expect(text).toMatch(/::ffff:127\.0\.42\.2, RoCE v2/);
  });

  it.each([
    'ibv_rc_pingpong -c -n 20',
    'ibv_rc_pingpong -e -n 20',
    'ibv_rc_pingpong -N -n 20',
    'ibv_uc_pingpong -n 20',
    'ibv_ud_pingpong -s 1024 -n 20',
    'ibv_srq_pingpong -n 20',
  ])('%s', async (line) => {
    const [command, ...args] = line.split(' ');
    expect(await pair(command, '-g', '0', ...args)).toMatch(/iters in/);
  });

  it.each([
    'ib_write_bw -n 20 -s 8192',
    'ib_send_bw -n 20 -s 8192',
    'ib_read_bw -n 20 -s 8192',
    'ib_atomic_bw -n 20',
    'ib_write_lat -n 20',
    'ib_send_lat -n 20',
    'ib_send_bw -n 20 -c UD -s 1024',
    'ib_send_bw -n 20 --use-srq -e',
    'ib_write_bw -n 20 -q 4 -b',
  ])('%s', async (line) => {
    const [command, ...args] = line.split(' ');
    const tell = command.endsWith('_lat') ? /t_typical/ : /BW average/;
    expect(await pair(command, ...args)).toMatch(tell);
  });

  /** Runs both ends of programs that connect by librdmacm: each finds the other by the address of its NIC. */
  async function connected(server_: string, client_: string): Promise<readonly string[]> {
    const [first, ...firstArgs] = server_.split(' ');
    const [second, ...secondArgs] = client_.split(' ');
    const a = start('server', first, firstArgs);
    await eventually(() => server.listeners > 0 || a.child.exitCode !== null);
    const b = start('client', second, secondArgs);
    const ends = await Promise.all([a.ended, b.ended]);
    const texts = ends.map(({ text }) => text);
    expect(
      ends.map(({ code }) => code),
      texts.join('\n'),
    ).toEqual([0, 0]);
    expect(server.listeners).toBe(0);
    return texts;
  }

  it.each([
    [`rping -s -a ${SERVER} -C 5 -V`, `rping -c -a ${SERVER} -C 5 -V`],
    ['ucmatose -c 4', `ucmatose -s ${SERVER} -c 4`],
    ['udaddy', `udaddy -s ${SERVER}`],
    ['rdma_server', `rdma_client -s ${SERVER}`],
    ['rstream -S 64 -C 10 -I 1', `rstream -s ${SERVER} -S 64 -C 10 -I 1`],
    ['ib_write_bw -R -n 20', `ib_write_bw -R -n 20 ${SERVER}`],
  ])('%s', async (first, second) => {
    for (const text of await connected(first, second)) expect(text).not.toMatch(/fail|unexpected/i);
  });

  it.skipIf(!isInstalled('ucx_perftest'))('ucx_perftest -t tag_lat, which connects by datagrams', async () => {
    const port = String(await freePort());
    const args = ['ucx_perftest', '-t', 'tag_lat', '-n', '20', '-w', '1', '-p', port];
    const ucx = ['UCX_TLS=rc_verbs,ud_verbs', 'UCX_NET_DEVICES=rocev2_0:1'];
    const first = start('server', 'env', [...ucx, ...args]);
    await eventually(() => listens(Number(port)) || first.child.exitCode !== null);
    const second = start('client', 'env', [...ucx, ...args, '127.0.0.1']);
    const ends = await Promise.all([first.ended, second.ended]);
    expect(ends.map(({ code }) => code)).toEqual([0, 0]);
    expect(ends[1].text).toMatch(/Final:/);
  });

  it('rping without a server is rejected', async () => {
    const { code, text } = await start('client', 'rping', ['-c', '-a', SERVER, '-C', '1']).ended;
    expect(code).not.toBe(0);
    expect(text).toMatch(/RDMA_CM_EVENT_REJECTED, error 8/);
  });

  it('a program that is killed leaves nothing, and the next one runs', async () => {
    const { child, ended } = start('server', 'ibv_rc_pingpong', ['-g', '0', '-p', String(await freePort())]);
    await eventually(() => server.objects > 3);
    child.kill('SIGKILL');
    await ended;
    await eventually(() => server.objects === 0);
    expect(await pair('ib_write_bw', '-n', '20')).toMatch(/BW average/);
  });
});
