import { type ChildProcess, execFile, fork, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { freeUdpPorts } from '../support/free-port.js';
import { isBuilt, MAIN, Program } from './executable.js';

interface Ends {
  readonly server: Program;
  readonly client: Program;
  readonly tcpPort: number;
}

async function start(udpPorts: readonly number[], transferring: 'server' | 'client', tcp = 0): Promise<Ends> {
  const address = '127.0.0.1';
  const server = Program.fixture(
    'connection-endpoint.mjs',
    JSON.stringify({ listen: tcp, address, udpPort: udpPorts[0], transfers: transferring === 'server' }),
  );
  const tcpPort = Number((await server.writes('stdout', /"listening":(\d+)/))[1]);
  const client = Program.fixture(
    'connection-endpoint.mjs',
    JSON.stringify({ connect: tcpPort, address, udpPort: udpPorts[1], transfers: transferring === 'client' }),
  );
  return { server, client, tcpPort };
}

describe.skipIf(!isBuilt)('kill -9 of an endpoint in mid-transfer', () => {
  it.each(['server', 'client'] as const)(
    'the %s finds out, says why, and a restart works at once',
    async (survivor) => {
      const udpPorts = await freeUdpPorts(2); // Restarted endpoints use the same again.
      const ends = await start(udpPorts, survivor);
      const victim = survivor === 'server' ? ends.client : ends.server;
      await ends[survivor].writes('stdout', /"transferring"/);
      victim.kill('SIGKILL');
      const [, text] = await ends[survivor].writes('stdout', /(\{"completed".*\})\n/);
      const { completed, outcomes } = JSON.parse(text);
      expect(completed).toBeGreaterThanOrEqual(4);
      expect(outcomes.length).toBeGreaterThan(0);
      for (const outcome of outcomes) {
        expect(outcome).toMatch(
          /^ERR_ROCE_COMPLETION: RDMA_WRITE wr_id \d+ on QP 0x[0-9a-f]+: .*retry.* \(12\); the peer process is gone$/,
        );
      }
      expect(await ends[survivor].ended()).toBe(0);

      const again = await start(udpPorts, survivor, ends.tcpPort);
      await again[survivor].writes('stdout', /"transferring"/);
      again.server.kill('SIGKILL');
      again.client.kill('SIGKILL');
      await Promise.all([again.server.ended(), again.client.ended()]);
    },
  );

  it('over raw verbs: RETRY_EXC_ERR for the oldest request, the others flushed, in order', async () => {
    const udpPorts = await freeUdpPorts(2); // Restarted endpoints use the same again.
    const path = fileURLToPath(new URL('./fixtures/verbs-endpoint.mjs', import.meta.url));
    const [sender, victim] = udpPorts.map((udpPort, i) =>
      fork(path, [JSON.stringify({ address: '127.0.0.1', udpPort, transfers: i === 0 })], {
        serialization: 'advanced',
      }),
    );
    try {
      const [ofSender, ofVictim] = await Promise.all([message(sender), message(victim)]);
      sender.send(ofVictim);
      victim.send(ofSender);
      await Promise.all([message(sender), message(victim)]);
      victim.send({ go: true });
      sender.send({ go: true });
      expect(await message(sender)).toEqual({ transferring: true });
      victim.kill('SIGKILL');
      const { failures, state } = (await message(sender)) as {
        failures: Array<{ wrId: number; statusName: string }>;
        state: string;
      };
      expect(failures.map(({ statusName }) => statusName)).toEqual(['RETRY_EXC_ERR', ...Array(7).fill('WR_FLUSH_ERR')]);
      const [{ wrId: first }] = failures;
      expect(failures.map(({ wrId }) => wrId)).toEqual(Array.from({ length: 8 }, (_, i) => first + i));
      expect(state).toBe('ERR');
    } finally {
      sender.kill('SIGKILL');
      victim.kill('SIGKILL');
    }
  });
});

async function message(child: ChildProcess): Promise<Record<string, unknown>> {
  const [received] = await once(child, 'message');
  return received;
}

/** A user that may make network namespaces, and the tools for it. */
const hasNamespaces =
  spawnSync('unshare', ['-rn', 'sh', '-c', 'ip link add probe type veth && command -v nsenter']).status === 0;

describe.runIf(isBuilt && hasNamespaces)('the host of a server dies in mid-transfer', () => {
  const host = async (...args: string[]) => {
    const fixture = fileURLToPath(new URL('./fixtures/dead-host.mjs', import.meta.url));
    const { stdout } = await promisify(execFile)('unshare', ['-rn', process.execPath, fixture, MAIN, ...args]);
    return JSON.parse(stdout) as { code: number; seconds: number; stderr: string };
  };

  it.each(['[]', '["--perftest"]'])('the client says so and exits, options %s', async (options) => {
    const { code, seconds, stderr } = await host(options);
    expect(stderr).toMatch(
      /transport retry counter exceeded \(12\); [0-9.]+ QP 0x[0-9a-f]{6} has not acknowledged PSN 0x[0-9a-f]{6}; \d+ packets were sent again, \d+ packets were heard from it before \(the peer does not answer/,
    );
    expect(code).toBe(1);
    expect(seconds).toBeLessThan(5);
  });

  it('an interrupted client exits', async () => {
    const { code, seconds } = await host('[]', 'SIGINT');
    expect(code).toBe(130);
    expect(seconds).toBeLessThan(5);
  });
});
