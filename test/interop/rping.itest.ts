/** `rocev2 rping` against rping on Linux Soft-RoCE: rdma_cm over QP1, both roles, both IP versions, with loss, and what is refused. */

import { expect, test } from 'vitest';
import { eventually } from '../support/eventually.js';
import { cell } from './support/cell.js';
import { describeWithRig } from './support/describe-on-rig.js';
import { jsonResult, saysOnStderr, startRocev2 } from './support/rocev2.js';

const PORT = 7174;
const FAMILIES = [4, 6] as const;
/** From the smallest that stock rping takes. */
const SIZES = [23, 64, 1000, 5000, 65_535];

await describeWithRig('rocev2 rping', {}, (rig) => {
  const ours = (family: 4 | 6) => (family === 4 ? rig().hostSide.ip4 : rig().hostSide.ip6);
  const theirs = (family: 4 | 6) => (family === 4 ? rig().guests[0].ip4 : rig().guests[0].ip6);

  async function asClient(family: 4 | 6, count: number, size = 64) {
    const server = await rig().background('server', `rping -s -a ${theirs(family)} -S ${size} -V`);
    await rig().listening(PORT);
    const numbers = ['-C', `${count}`, '-S', `${size}`];
    const result = await jsonResult(
      startRocev2(rig(), ['rping', '-c', '-a', theirs(family), ...numbers, '-V', '--json']),
    );
    await server.wait(); // It does not think well of a client that disconnects, and says so with its exit code.
    return result;
  }

  async function asServer(family: 4 | 6, count: number, size = 64) {
    const numbers = ['-C', `${count}`, '-S', `${size}`];
    const server = startRocev2(rig(), ['rping', '-s', '-a', ours(family), ...numbers, '-V', '--json']);
    await saysOnStderr(server, 'listening');
    const client = await rig().exec(`rping -c -a ${ours(family)} -C ${count} -S ${size} -V`);
    expect(client.exitCode, client.stderr).toBe(0);
    return jsonResult(server);
  }

  for (const family of FAMILIES) {
    const facts = { tool: 'rping -V', family, what: 'a thousand pings' };
    cell({ ...facts, role: 'client' }, async () => {
      expect(await asClient(family, 1000)).toMatchObject({
        role: 'client',
        peer: theirs(family),
        iterations: 1000,
        sizeBytes: 64,
        verified: true,
      });
    });
    cell({ ...facts, role: 'server' }, async () => {
      expect(await asServer(family, 1000)).toMatchObject({
        role: 'server',
        peer: theirs(family),
        iterations: 1000,
        verified: true,
      });
    });
  }

  for (const size of SIZES) {
    const run = async () => {
      expect(await asClient(4, 50, size)).toMatchObject({ iterations: 50, sizeBytes: size, verified: true });
      expect(await asServer(4, 50, size)).toMatchObject({ iterations: 50, sizeBytes: size, verified: true });
    };
    cell({ tool: 'rping -V', role: 'both', family: 4, what: `${size} bytes` }, run, { group: 'sizes' });
  }

  cell({ tool: 'rping -V', role: 'both', family: 4, what: 'ten connections, one after another' }, async () => {
    for (let i = 0; i < 5; i++) {
      expect(await asClient(4, 1)).toMatchObject({ iterations: 1, verified: true });
      expect(await asServer(4, 1)).toMatchObject({ iterations: 1, verified: true });
    }
  });

  // Only what the managers say: with its acknowledgements lost in step with its pings, rping overfills its send queue of 16.
  for (const direction of ['to1', 'from1'] as const) {
    const what = `every second CM message ${direction === 'to1' ? 'to' : 'from'} the guest lost`;
    const run = async () => {
      const loss = await rig().loss({ every: 2, direction, gsiOnly: true });
      try {
        expect(await asClient(4, 20)).toMatchObject({ iterations: 20, verified: true });
        expect(await asServer(4, 20)).toMatchObject({ iterations: 20, verified: true });
      } finally {
        expect(await loss.stop()).toBeGreaterThan(0);
      }
    };
    cell({ tool: 'rping -V', role: 'both', family: 4, what }, run, { group: 'lost CM messages' });
  }

  test('a client that is killed, and another one at once: nothing of the first is in its way', async () => {
    const server = await rig().background('persistent', `rping -s -P -a ${theirs(4)}`);
    await rig().listening(PORT);
    const first = startRocev2(rig(), ['rping', '-c', '-a', theirs(4), '-v']);
    await first.waitForOutput(/rdma-ping-20/);
    process.kill(first.pid!, 'SIGKILL');
    await first.wait();
    const second = await jsonResult(startRocev2(rig(), ['rping', '-c', '-a', theirs(4), '-C', '100', '-V', '--json']));
    expect(second).toMatchObject({ iterations: 100, verified: true });
    await server.kill();
  });

  test('a server that is killed: the peer notices, and the next one is found', async () => {
    const first = startRocev2(rig(), ['rping', '-s', '-a', ours(4)]);
    await saysOnStderr(first, 'listening');
    const client = await rig().background('client', `rping -c -a ${ours(4)} -v`);
    await first.waitForOutput(/^/);
    await eventually(async () => (await client.log()).stdout.includes('rdma-ping-5'));
    process.kill(first.pid!, 'SIGKILL');
    await first.wait();
    expect(await asServer(4, 100)).toMatchObject({ iterations: 100, verified: true });
    await client.kill();
  });

  test('nobody listens in the guest', async () => {
    const client = startRocev2(rig(), ['rping', '-c', '-a', theirs(4), '-C', '1']);
    const { exitCode, stderr } = await client.wait();
    expect(exitCode).toBe(3);
    expect(stderr).toContain('no listener on that port (8)');
  });

  test('nobody listens here: rping is told, and does not wait', async () => {
    const server = startRocev2(rig(), ['rping', '-s', '-a', ours(4), '-p', '7000']);
    await saysOnStderr(server, 'listening');
    const client = await rig().exec(`rping -c -a ${ours(4)} -p 7001 -C 1`, { timeoutMs: 10_000 });
    expect(client.exitCode).not.toBe(0);
    expect(client.exitCode).not.toBe(124);
    expect(client.stdout + client.stderr).toMatch(/REJECTED|rejected|error 8/i);
    await server.stop();
  });
});
