/** The perftest exchange against ib_write_bw and ib_read_bw on Linux Soft-RoCE, both roles. */

import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { describeWithRig } from './support/describe-on-rig.js';
import { jsonResult, saysOnStderr } from './support/rocev2.js';

const PEER = fileURLToPath(new URL('support/perftest-peer.js', import.meta.url));
const PORT = 18515;
const SIZE = 10_000;
const ITERATIONS = 50;
const FAMILIES = [
  { family: 4, gidIndex: 1 },
  { family: 6, gidIndex: 2 },
] as const;

await describeWithRig('perftest', {}, (rig) => {
  const cells = FAMILIES.flatMap((family) => (['write', 'read'] as const).map((op) => ({ ...family, op })));
  const start = (role: string, op: string, family: 4 | 6, host: string) => {
    const address = family === 4 ? rig().hostSide.ip4 : rig().hostSide.ip6;
    return rig().host([process.execPath, PEER, role, op, address, host, `${SIZE}`, `${ITERATIONS}`]);
  };

  test.each(cells)('client: $op over IPv$family', async ({ op, family, gidIndex }) => {
    const server = await rig().background('server', `ib_${op}_bw -x ${gidIndex} -s ${SIZE} -n ${ITERATIONS}`);
    await rig().listening(PORT);
    const result = await jsonResult(start('client', op, family, rig().guests[0].ip4));
    const { exitCode, stdout, stderr } = await server.wait();
    expect(exitCode, stdout + stderr).toBe(0);
    expect(stdout).toMatch(new RegExp(`${SIZE} +${ITERATIONS} `));
    expect(result).toMatchObject({ peerVersion: '6.06', pathMtu: 1024, cycleBufferBytes: 4096 });
    expect(result['touched']).toEqual(op === 'read' ? expect.any(Number) : 0);
  });

  test.each(cells)('server: $op over IPv$family', async ({ op, family, gidIndex }) => {
    const server = start('server', op, family, 'any');
    await saysOnStderr(server, 'listening');
    const tool = `ib_${op}_bw -x ${gidIndex} -s ${SIZE} -n ${ITERATIONS} ${rig().hostSide.ip4}`;
    const { exitCode, stdout, stderr } = await rig().exec(tool);
    expect(exitCode, stdout + stderr).toBe(0);
    const result = await jsonResult(server);
    expect(result).toMatchObject({
      peerVersion: '6.06',
      pathMtu: 1024,
      report: { sizeBytes: SIZE, iterations: ITERATIONS },
    });
    // ib_write_bw writes what it never filled in, zeros for the most part; ib_read_bw changes nothing here.
    if (op === 'write') expect(result['touched']).toBeGreaterThan(SIZE / 2);
    else expect(result['touched']).toBe(0);
  });
});
