/** The connection manager against librdmacm's examples on Linux: many connections at once, and services we do not have. */

import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeOnRig } from './support/describe-on-rig.js';
import { Rig } from './support/rig.js';
import { buildRocev2, jsonResult } from './support/rocev2.js';

const ACCEPTOR = fileURLToPath(new URL('support/cm-acceptor.js', import.meta.url));
const UCMATOSE_PORT = 7471;

await describeOnRig('the connection manager', 'bridge', () => {
  let rig: Rig;
  beforeAll(async () => {
    await buildRocev2();
    rig = await Rig.start({ guests: 1 });
  });
  afterAll(() => rig?.stop());

  async function acceptor(address: string, port: number, count: number) {
    const server = rig.host([process.execPath, ACCEPTOR, address, `${port}`, `${count}`]);
    for (let i = 0; i < 200 && !server.stderr.includes('listening'); i++) {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    return server;
  }

  test.each([4, 6] as const)('ucmatose opens sixteen connections at once over IPv%i', async (family) => {
    const address = family === 4 ? rig.hostSide.ip4 : rig.hostSide.ip6;
    const server = await acceptor(address, UCMATOSE_PORT, 16);
    const client = await rig.exec(`ucmatose -s ${address} -c 16 -C 0`);
    expect(client.exitCode, client.stdout + client.stderr).toBe(0);
    const { states, counters } = await jsonResult(server);
    expect(states).toEqual(Array(16).fill('RTS'));
    expect(counters).toMatchObject({ malformed: 0, unmatched: 0, retries: 0 });
  });

  test('a datagram service is refused: udaddy is told', async () => {
    const server = await acceptor(rig.hostSide.ip4, UCMATOSE_PORT, 1);
    const client = await rig.exec(`udaddy -s ${rig.hostSide.ip4} -c 1 -C 0`, { timeoutMs: 10_000 });
    expect(client.exitCode).not.toBe(124);
    expect(client.stdout + client.stderr).toMatch(/RDMA_CM_EVENT_UNREACHABLE|error/);
    await server.stop();
  });
});
