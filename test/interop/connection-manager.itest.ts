/** The connection manager against librdmacm's examples on Linux: many connections, silence, datagram services, and services that nobody has. */

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

  // The stock servers listen to IPv4 alone unless they are told an address.
  const MANY = ['-c', '4', '-C', '10', '-S', '3000'];
  const TEN = ['-c', '10'];
  const commands = [
    { tool: 'ucmatose', flags: MANY, theirs: MANY, result: { connections: 4, iterations: 10, sizeBytes: 3000 } },
    { tool: 'cmtime', flags: TEN, theirs: [], result: { connections: 10 } },
  ];
  for (const { tool, flags, theirs: serverFlags, result } of commands) {
    for (const family of [4, 6] as const) {
      cell({ tool, role: 'client', family, what: `rocev2 ${tool}` }, async () => {
        const server = await rig().background('server', [tool, '-b', theirs(family), ...serverFlags].join(' '));
        try {
          await rig().listening(UCMATOSE_PORT);
          const client = startRocev2(rig(), [tool, '-s', theirs(family), '-b', ours(family), ...flags, '--json']);
          expect(await jsonResult(client)).toMatchObject({ role: 'client', peer: theirs(family), ...result });
          // The server of cmtime waits for more.
          if (tool === 'ucmatose') expect((await server.wait()).exitCode).toBe(0);
        } finally {
          await server.kill();
        }
      });
      cell({ tool, role: 'server', family, what: `rocev2 ${tool}` }, async () => {
        const server = startRocev2(rig(), [tool, '-b', ours(family), ...flags, '--json']);
        await saysOnStderr(server, 'listening');
        const client = await rig().exec([tool, '-s', ours(family), ...flags].join(' '));
        expect(client.exitCode, client.stdout + client.stderr).toBe(0);
        expect(await jsonResult(server)).toMatchObject({ role: 'server', peer: theirs(family), ...result });
      });
    }
  }

  const FOUR = ['-c', '4', '-C', '10', '-S', '1000'];
  const datagrams = { connections: 4, iterations: 10, sizeBytes: 1000 };

  async function udaddyClient(family: 4 | 6) {
    const server = await rig().background('server', ['udaddy', '-b', theirs(family), ...FOUR].join(' '));
    try {
      await rig().listening(RPING_PORT);
      const client = startRocev2(rig(), ['udaddy', '-s', theirs(family), '-b', ours(family), ...FOUR, '--json']);
      expect(await jsonResult(client)).toMatchObject({ role: 'client', peer: theirs(family), ...datagrams });
      expect((await server.wait()).exitCode).toBe(0);
    } finally {
      await server.kill();
    }
  }

  async function udaddyServer(family: 4 | 6) {
    const server = startRocev2(rig(), ['udaddy', '-b', ours(family), ...FOUR, '--json']);
    await saysOnStderr(server, 'listening');
    const client = await rig().exec(['udaddy', '-s', ours(family), ...FOUR].join(' '), { timeoutMs: 100_000 });
    expect(client.exitCode, client.stdout + client.stderr).toBe(0);
    expect(await jsonResult(server)).toMatchObject({ role: 'server', peer: theirs(family), ...datagrams });
  }

  for (const family of [4, 6] as const) {
    cell({ tool: 'udaddy', role: 'client', family, what: 'rocev2 udaddy' }, () => udaddyClient(family));
    cell({ tool: 'udaddy', role: 'server', family, what: 'rocev2 udaddy' }, () => udaddyServer(family));
  }

  for (const direction of ['to1', 'from1'] as const) {
    const what = `every second CM message ${direction === 'to1' ? 'to' : 'from'} the guest lost`;
    const run = async () => {
      const loss = await rig().loss({ every: 2, direction, gsiOnly: true });
      try {
        await udaddyServer(4);
      } finally {
        expect(await loss.stop()).toBeGreaterThan(0);
      }
    };
    cell({ tool: 'udaddy', role: 'server', family: 4, what }, run, { group: 'lost CM messages' });
  }

  cell({ tool: 'udaddy', role: 'server', family: 4, what: 'a datagram service that nobody has' }, async () => {
    const server = await acceptor(rig().hostSide.ip4, '1');
    const client = await rig().exec(`udaddy -s ${rig().hostSide.ip4} -c 1 -C 0`, { timeoutMs: 10_000 });
    expect(client.exitCode).not.toBe(124);
    expect(client.stdout + client.stderr).toMatch(/RDMA_CM_EVENT_UNREACHABLE|error/);
    await server.stop();
  });

  cell({ tool: 'udaddy', role: 'client', family: 4, what: 'a datagram service that nobody has' }, async () => {
    const client = startRocev2(rig(), ['udaddy', '-s', theirs(4), '-b', ours(4)]);
    const { exitCode, stderr } = await client.wait(20_000);
    expect(exitCode).toBe(3);
    expect(stderr).toContain('no datagram service on that port');
  });
});
