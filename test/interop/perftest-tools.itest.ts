/** `rocev2 bw|lat --perftest` against all eight stock perftest tools on Linux Soft-RoCE: both roles, both IP versions, over TCP and rdma_cm. */

import { expect } from 'vitest';
import { cell } from './support/cell.js';
import { describeWithRig } from './support/describe-on-rig.js';
import { PATIENCE } from './support/patience.js';
import { jsonResult, saysOnStderr, startRocev2 } from './support/rocev2.js';

const PORT = 18515;
const ITERATIONS = 100;
const OPS = ['write', 'read', 'send', 'atomic'] as const;
type Op = (typeof OPS)[number];
type Kind = 'bw' | 'lat';

/** Not a multiple of a packet, and several of them; a latency test moves less. */
const BYTES = { bw: 20_000, lat: 5_000 } as const;

interface Run {
  readonly op: Op;
  readonly kind: Kind;
  readonly family: 4 | 6;
  readonly mtu?: number;
  /** Options that both tools spell alike. */
  readonly both?: readonly string[];
  /** Iterations expected from us; undefined: not known beforehand. */
  readonly iterations: number | undefined;
  /** Instead of the usual number of iterations. */
  readonly length?: { readonly ours: readonly string[]; readonly theirs: readonly string[] };
}

await describeWithRig('rocev2 bw and lat --perftest', { mtu: 4200 }, (rig) => {
  const numbersOf = ({ op, kind, mtu, both = [] }: Run) => [
    ...(op === 'atomic' ? [] : ['-s', `${BYTES[kind]}`]),
    ...(mtu === undefined ? [] : ['-m', `${mtu}`]),
    ...(both.includes('-R') ? [] : PATIENCE),
    ...both,
  ];
  const lengthOf = ({ length }: Run) => length ?? { ours: ['-n', `${ITERATIONS}`], theirs: ['-n', `${ITERATIONS}`] };
  const start = (run: Run, host: readonly string[]) => {
    const bind = run.family === 4 ? rig().hostSide.ip4 : rig().hostSide.ip6;
    const args = [...numbersOf(run), ...lengthOf(run).ours, '--bind', bind, '--perftest', '--json'];
    return startRocev2(rig(), [run.kind, run.op, ...host, ...args]);
  };
  const stock = (run: Run) =>
    [`ib_${run.op}_${run.kind}`, '-x', run.family === 4 ? '1' : '2', ...numbersOf(run), ...lengthOf(run).theirs].join(
      ' ',
    );
  const expectationOf = ({ op, kind, mtu, iterations }: Run) => ({
    op,
    sizeBytes: op === 'atomic' ? 8 : BYTES[kind],
    ...(iterations !== undefined && { iterations }),
    ...(mtu !== undefined && { mtu }),
  });

  async function asClient(run: Run, host: string): Promise<void> {
    const server = await rig().background('server', stock(run));
    try {
      await rig().listening(PORT);
      const result = await jsonResult(start(run, [host])).catch(async (error: Error) => {
        const { stdout, stderr } = await server.log();
        throw new Error(`${error.message}\nthe server printed:\n${stdout}${stderr}`);
      });
      const { exitCode, stdout, stderr } = await server.wait();
      expect(exitCode, stdout + stderr).toBe(0);
      expect(result).toMatchObject(expectationOf(run));
      expect(result['iterations']).toBeGreaterThan(0);
      if (run.kind === 'lat') expect(result['latencyNs']).toMatchObject({ p50: expect.any(Number) });
    } finally {
      await server.kill();
    }
  }

  async function asServer(run: Run, host: string): Promise<void> {
    const server = start(run, []);
    try {
      await saysOnStderr(server, 'waiting for');
      const { exitCode, stdout, stderr } = await rig().exec(`${stock(run)} ${host}`);
      expect(exitCode, stdout + stderr).toBe(0);
      const result = await jsonResult(server);
      expect(result).toMatchObject(expectationOf(run));
      // perftest checks nothing, but what its atomics add up to can be seen here.
      if (run.op === 'atomic' && run.iterations !== undefined) expect(result['verified']).toBe(true);
    } finally {
      await server.stop();
    }
  }

  function overTcp(run: Run, what?: string): void {
    const { op, kind, family, mtu } = run;
    const facts = {
      tool: `ib_${op}_${kind}`,
      family,
      ...(mtu !== undefined && { mtu }),
      ...(what !== undefined && { what }),
    };
    // perftest's TCP connection is over IPv4, also when its GID is IPv6.
    const options = { group: `${kind}, ${what}` };
    cell({ ...facts, role: 'client' }, () => asClient(run, rig().guests[0].ip4), options);
    cell({ ...facts, role: 'server' }, () => asServer(run, rig().hostSide.ip4), options);
  }

  for (const kind of ['bw', 'lat'] as const) {
    for (const op of OPS) {
      for (const family of [4, 6] as const) {
        for (const mtu of [1024, 4096]) overTcp({ kind, op, family, mtu, iterations: ITERATIONS });
      }
    }
  }

  for (const op of OPS) {
    overTcp({ kind: 'bw', op, family: 4, both: ['-q', '4'], iterations: 4 * ITERATIONS }, 'four queue pairs');
  }

  const twoSeconds = { ours: ['-D', '2s'], theirs: ['-D', '2', '-f', '0'] };
  for (const op of OPS) {
    overTcp({ kind: 'bw', op, family: 4, length: twoSeconds, iterations: undefined }, 'for two seconds');
  }

  /** IPv4 only: perftest 6.06 looks its peers up as IPv4 addresses there, whatever it is told. */
  function overRdmaCm(op: Op, kind: Kind, queuePairs = 1): void {
    const both = queuePairs === 1 ? ['-R'] : ['-R', '-q', `${queuePairs}`];
    const run: Run = { op, kind, family: 4, both, iterations: queuePairs * ITERATIONS };
    const facts = { tool: `ib_${op}_${kind} ${both.join(' ')}`, family: 4 } as const;
    // Two stock tools fail with each other now and then under -R: one connects again before the other listens again.
    const options = { retry: 2, group: 'RDMA CM' };
    cell({ ...facts, role: 'client' }, () => asClient(run, rig().guests[0].ip4), options);
    cell({ ...facts, role: 'server' }, () => asServer(run, rig().hostSide.ip4), options);
  }

  for (const kind of ['bw', 'lat'] as const) {
    for (const op of OPS) overRdmaCm(op, kind);
  }
  overRdmaCm('write', 'bw', 3);
});
