/** The connection manager against librdmacm's examples on Linux: many connections, silence, and services we do not have. */

import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { cell } from './support/cell.js';
import { describeWithRig } from './support/describe-on-rig.js';
import { jsonResult, saysOnStderr, startRocev2 } from './support/rocev2.js';

const ACCEPTOR = fileURLToPath(new URL('support/cm-acceptor.js', import.meta.url));
const CONNECTOR = fileURLToPath(new URL('support/cm-connector.js', import.meta.url));
const UCMATOSE_PORT = 7471;
const RPING_PORT = 7174;
const SEQUENCE = 100;

await describeWithRig('the connection manager', {}, (rig) => {
  const ours = (family: 4 | 6) => (family === 4 ? rig().hostSide.ip4 : rig().hostSide.ip6);
  const theirs = (family: 4 | 6) => (family === 4 ? rig().guests[0].ip4 : rig().guests[0].ip6);

  async function acceptor(address: string, ...args: string[]) {
    const server = rig().host([process.execPath, ACCEPTOR, address, `${UCMATOSE_PORT}`, ...args]);
    await saysOnStderr(server, 'listening');
    return server;
  }

  for (const family of [4, 6] as const) {
    cell({ tool: 'ucmatose', role: 'server', family, what: 'sixteen connections at once' }, async () => {
      const server = await acceptor(ours(family), '16');
      const client = await rig().exec(`ucmatose -s ${ours(family)} -c 16 -C 0`);
      expect(client.exitCode, client.stdout + client.stderr).toBe(0);
      const { states, counters } = await jsonResult(server);
      expect(states).toEqual(Array(16).fill('RTS'));
      expect(counters).toMatchObject({ malformed: 0, unmatched: 0 });
    });

    const what = `${SEQUENCE} connections, one after another`;
    cell({ tool: 'ucmatose', role: 'server', family, what: `${what}; we end them` }, async () => {
      const server = await acceptor(ours(family), `${SEQUENCE}`, 'in-turn');
      const client = await rig().exec(
        `for i in $(seq ${SEQUENCE}); do ucmatose -s ${ours(family)} -c 1 -C 0 >/tmp/out 2>&1 || { cat /tmp/out; exit 1; }; done`,
        { timeoutMs: 100_000 },
      );
      expect(client.exitCode, client.stdout + client.stderr).toBe(0);
      const { states, counters } = await jsonResult(server);
      expect(states).toEqual(Array(SEQUENCE).fill('RTS'));
      expect(counters).toMatchObject({ malformed: 0 });
    });

    cell({ tool: 'rping', role: 'client', family, what: `${what}; we end them` }, async () => {
      const server = await rig().background('server', `rping -s -P -a ${theirs(family)}`);
      await rig().listening(RPING_PORT);
      const connector = [CONNECTOR, ours(family), theirs(family), `${RPING_PORT}`, `${SEQUENCE}`];
      const { states, counters } = await jsonResult(rig().host([process.execPath, ...connector]), 100_000);
      await server.kill();
      expect(states).toEqual(Array(SEQUENCE).fill('RTS'));
      expect(counters).toMatchObject({ malformed: 0 });
    });

    cell({ tool: 'rping', role: 'client', family, what: 'nobody answers: we give up and say so' }, async () => {
      const loss = await rig().loss({ every: 1, direction: 'to1', gsiOnly: true });
      try {
        const client = startRocev2(rig(), ['rping', '-c', '-a', theirs(family), '-C', '1']);
        const { exitCode, stderr } = await client.wait(100_000);
        expect(exitCode).toBe(3);
        expect(stderr).toMatch(/no answer|did not answer/);
      } finally {
        expect(await loss.stop()).toBeGreaterThan(1); // The request was repeated.
      }
    });
  }

  cell({ tool: 'udaddy', role: 'server', family: 4, what: 'a datagram service is refused' }, async () => {
    const server = await acceptor(rig().hostSide.ip4, '1');
    const client = await rig().exec(`udaddy -s ${rig().hostSide.ip4} -c 1 -C 0`, { timeoutMs: 10_000 });
    expect(client.exitCode).not.toBe(124);
    expect(client.stdout + client.stderr).toMatch(/RDMA_CM_EVENT_UNREACHABLE|error/);
    await server.stop();
  });
});
