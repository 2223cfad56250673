/** `rocev2 bw --perftest` against the stock ib_write_bw, ib_read_bw and ib_send_bw on Linux Soft-RoCE: both roles, both IP versions. */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeOnRig } from './support/describe-on-rig.js';
import { Rig } from './support/rig.js';
import { buildRocev2, jsonResult, saysOnStderr, startRocev2 } from './support/rocev2.js';

const PORT = 18515;
const SIZE = 20_000;
const ITERATIONS = 100;
const CELLS = (['write', 'read', 'send'] as const).flatMap((op) =>
  ([4, 6] as const).flatMap((family) => ([1024, 4096] as const).map((mtu) => ({ op, family, mtu }))),
);

await describeOnRig('rocev2 bw --perftest', 'bridge', () => {
  let rig: Rig;
  beforeAll(async () => {
    await buildRocev2();
    rig = await Rig.start({ guests: 1, mtu: 4200 });
  });
  afterAll(() => rig?.stop());

  const numbers = (mtu: number) => ['-s', `${SIZE}`, '-n', `${ITERATIONS}`, '-m', `${mtu}`];
  const own = (family: 4 | 6) => ['--bind', family === 4 ? rig.hostSide.ip4 : rig.hostSide.ip6, '--perftest', '--json'];
  const tool = (op: string, family: 4 | 6, mtu: number) =>
    `ib_${op}_bw -x ${family === 4 ? 1 : 2} ${numbers(mtu).join(' ')}`;

  test.each(CELLS)('client of ib_*_bw: $op, IPv$family, path MTU $mtu', async ({ op, family, mtu }) => {
    const server = await rig.background('server', tool(op, family, mtu));
    await rig.listening(PORT);
    const result = await jsonResult(startRocev2(rig, ['bw', op, rig.guests[0].ip4, ...numbers(mtu), ...own(family)]));
    const { exitCode, stdout, stderr } = await server.wait();
    expect(exitCode, stdout + stderr).toBe(0);
    expect(result).toMatchObject({ op, sizeBytes: SIZE, iterations: ITERATIONS, mtu });
  });

  test.each(CELLS)('server of ib_*_bw: $op, IPv$family, path MTU $mtu', async ({ op, family, mtu }) => {
    const server = startRocev2(rig, ['bw', op, ...numbers(mtu), ...own(family)]);
    await saysOnStderr(server, 'waiting for');
    const { exitCode, stdout, stderr } = await rig.exec(`${tool(op, family, mtu)} ${rig.hostSide.ip4}`);
    expect(exitCode, stdout + stderr).toBe(0);
    expect(stdout).toMatch(new RegExp(`${SIZE} +${ITERATIONS} `));
    expect(await jsonResult(server)).toMatchObject({ op, iterations: ITERATIONS, mtu });
  });
});
