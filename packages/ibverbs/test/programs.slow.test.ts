/** Stock programs of libibverbs, librdmacm and perftest on two NICs of this process, and what is left of a program that was killed. */

import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { COUNTER } from '../../../src/memory/ring/counters.js';
import { eventually } from '../../../test/support/eventually.js';
import { freePort } from '../../../test/support/free-port.js';
import { isInstalled, listens, missing, Rig } from './rig.js';

const SERVER = '127.0.42.1';
const CLIENT = '127.0.42.2';

describe.skipIf(missing('ibv_devinfo', 'ib_write_bw', 'rping').length > 0)('stock programs', () => {
  let rig: Rig;

  beforeAll(async () => {
    rig = await Rig.open(SERVER, CLIENT);
  });
  afterEach(() => rig.endPrograms());
  afterAll(() => rig?.close());

  const pair = (command: string, ...args: readonly string[]) => rig.pair(SERVER, CLIENT, command, ...args);

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
    ['rstream -S 64 -C 10 -I 1', `rstream -s ${SERVER} -S 64 -C 10 -I 1`],
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

describe.skipIf(missing('ibv_rc_pingpong', 'ib_write_bw', 'rping').length > 0)('where packets are lost', () => {
  let rig: Rig;

  beforeAll(async () => {
    const loss = 'random=0.01';
    rig = await Rig.open({ address: SERVER, loss, seed: 1 }, { address: CLIENT, loss, seed: 2 });
  });
  afterEach(() => rig.endPrograms());
  afterAll(() => rig?.close());

  // A ping-pong program ends while the last acknowledgement may be lost, so its peer may fail.
  it.each([
    'ib_write_bw -n 200 -s 8192',
    'ib_send_bw -n 200 -s 8192',
    'ib_read_bw -n 200 -s 8192',
    'ib_atomic_bw -n 200',
    'ib_write_lat -n 200',
    'ib_read_lat -n 200',
    'ib_send_lat -n 200',
    'ib_write_bw -n 200 -q 4 -b',
    'ib_send_bw -n 200 --use-srq -e',
  ])('%s', async (line) => {
    const [command, ...args] = line.split(' ');
    await rig.pair(SERVER, CLIENT, command, ...args);
  });

  it.each([
    [`rping -s -a ${SERVER} -C 50 -V`, `rping -c -a ${SERVER} -C 50 -V`],
    ['ib_send_lat -R -n 200', `ib_send_lat -R -n 200 ${SERVER}`],
  ])('%s', async (first, second) => {
    await rig.connected(SERVER, first, CLIENT, second);
  });

  it('some were', () => {
    for (const address of [SERVER, CLIENT]) {
      expect(rig.nic(address).device.link.counters[COUNTER.fault_dropped]).toBeGreaterThan(5);
    }
  });
});
