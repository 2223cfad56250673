/** Stock programs of libibverbs, librdmacm and perftest on two NICs of this process, and what is left of a program that was killed. */

import { readFileSync } from 'node:fs';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../../../test/support/eventually.js';
import { freePort } from '../../../test/support/free-port.js';
import { isInstalled, missing, Rig } from './rig.js';

const SERVER = '127.0.42.1';
const CLIENT = '127.0.42.2';

/** Whether something listens on a TCP port of any address; a connection would be taken for a client. */
function listens(port: number): boolean {
  const hex = port.toString(16).toUpperCase().padStart(4, '0');
  const tables = ['/proc/net/tcp', '/proc/net/tcp6'].map((path) => readFileSync(path, 'utf8'));
  return tables.some((text) => new RegExp(`:${hex} [0-9A-F]+:0000 0A `).test(text));
}

describe.skipIf(missing('ibv_devinfo', 'ib_write_bw', 'rping').length > 0)('stock programs', () => {
  let rig: Rig;

  beforeAll(async () => {
    rig = await Rig.open(SERVER, CLIENT);
  });
  afterEach(() => rig.endPrograms());
  afterAll(() => rig?.close());

  /** Runs both ends to their end. */
  async function pair(command: string, ...args: string[]): Promise<string> {
    const port = await freePort();
    const common = [...args, '-p', String(port)];
    const first = rig.start(SERVER, command, ...common);
    await eventually(() => listens(port) || first.child.exitCode !== null);
    const second = rig.start(CLIENT, command, ...common, '127.0.0.1');
    const [a, b] = await Promise.all([first.ended, second.ended]);
    expect(`${a.text}${b.text}`).not.toMatch(/error|fail/i);
    expect([a.code, b.code], b.text).toEqual([0, 0]);
    return b.text;
  }

  it('ibv_devinfo shows an active port and the GID of the address', async () => {
    const { code, text } = await rig.start(CLIENT, 'ibv_devinfo', '-v').ended;
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

  it.each([
    [`rping -s -a ${SERVER} -C 5 -V`, `rping -c -a ${SERVER} -C 5 -V`],
    ['ucmatose -c 4', `ucmatose -s ${SERVER} -c 4`],
    ['udaddy', `udaddy -s ${SERVER}`],
    ['rdma_server', `rdma_client -s ${SERVER}`],
    ['ib_write_bw -R -n 20', `ib_write_bw -R -n 20 ${SERVER}`],
  ])('%s', async (first, second) => {
    for (const text of await rig.connected(SERVER, first, CLIENT, second)) expect(text).not.toMatch(/fail|unexpected/i);
  });

  it.skipIf(!isInstalled('ucx_perftest'))('ucx_perftest -t tag_lat, which connects by datagrams', async () => {
    const port = String(await freePort());
    const args = ['ucx_perftest', '-t', 'tag_lat', '-n', '20', '-w', '1', '-p', port];
    const ucx = ['UCX_TLS=rc_verbs,ud_verbs', 'UCX_NET_DEVICES=rocev2_0:1'];
    const first = rig.start(SERVER, 'env', ...ucx, ...args);
    await eventually(() => listens(Number(port)) || first.child.exitCode !== null);
    const second = rig.start(CLIENT, 'env', ...ucx, ...args, '127.0.0.1');
    const ends = await Promise.all([first.ended, second.ended]);
    expect(ends.map(({ code }) => code)).toEqual([0, 0]);
    expect(ends[1].text).toMatch(/Final:/);
  });

  it('rping without a server is rejected', async () => {
    const { code, text } = await rig.start(CLIENT, 'rping', '-c', '-a', SERVER, '-C', '1').ended;
    expect(code).not.toBe(0);
    expect(text).toMatch(/RDMA_CM_EVENT_REJECTED, error 8/);
  });

  it('a program that is killed leaves nothing, and the next one runs', async () => {
    const { child, ended } = rig.start(SERVER, 'ibv_rc_pingpong', '-g', '0', '-p', String(await freePort()));
    await eventually(() => rig.nic(SERVER).objects > 3);
    child.kill('SIGKILL');
    await ended;
    await eventually(() => rig.nic(SERVER).objects === 0);
    expect(await pair('ib_write_bw', '-n', '20')).toMatch(/BW average/);
  });
});
