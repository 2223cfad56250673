/** `rocev2 pingpong` against ibv_rc_pingpong on Linux Soft-RoCE: both roles, both IP versions, one byte to a mebibyte, with and without loss. */

import { expect, test } from 'vitest';
import { cell } from './support/cell.js';
import type { CommandResult } from './support/command.js';
import { describeWithRig } from './support/describe-on-rig.js';
import { expectBothDone, LAST_ACKNOWLEDGEMENT } from './support/last-acknowledgement.js';
import { jsonResult, saysOnStderr, startRocev2 } from './support/rocev2.js';

const PORT = 18515;
const FAMILIES = [
  { family: 4, gidIndex: 1 },
  { family: 6, gidIndex: 2 },
] as const;
const SIZES = [1, 3, 1024, 1025, 4096, 65_536, 2 ** 20];

/** On a busy machine the requester of Soft-RoCE can stand still for ever when an ACK crosses its repetition: docs/interop.md. */
const AGAIN = { retry: 1 };
/** The ACK of the last message may be among the packets that are lost, and who should send it again has ended by then: one of fifty. */
const LAST_ACK_LOST = { retry: { count: 2, condition: new RegExp(LAST_ACKNOWLEDGEMENT) } };

interface Game {
  readonly family: 4 | 6;
  readonly gidIndex: number;
  readonly size: number;
  readonly mtu: number;
  readonly iterations: number;
}

await describeWithRig('rocev2 pingpong', { mtu: 4200 }, (rig) => {
  const cells = FAMILIES.flatMap(({ family, gidIndex }) => SIZES.map((size) => ({ family, gidIndex, size })));
  const addressOf = (family: 4 | 6) => (family === 4 ? rig().hostSide.ip4 : rig().hostSide.ip6);

  async function asClient(cell: Game) {
    const numbers = `-s ${cell.size} -m ${cell.mtu} -n ${cell.iterations}`;
    const server = await rig().background('server', `ibv_rc_pingpong -g ${cell.gidIndex} ${numbers}`);
    await rig().listening(PORT);
    const args = ['pingpong', rig().guests[0].ip4, '--bind', addressOf(cell.family), ...numbers.split(' ')];
    const ours = await startRocev2(rig(), [...args, '-c', '--json']).wait();
    return resultOf(ours, await server.wait());
  }

  async function asServer(cell: Game) {
    const numbers = `-s ${cell.size} -m ${cell.mtu} -n ${cell.iterations}`;
    const args = ['pingpong', '--bind', addressOf(cell.family), ...numbers.split(' ')];
    const server = startRocev2(rig(), [...args, '-c', '--json']);
    await saysOnStderr(server, 'waiting for a client');
    const theirs = await rig().exec(`ibv_rc_pingpong -g ${cell.gidIndex} -c ${numbers} ${rig().hostSide.ip4}`);
    return resultOf(await server.wait(), theirs);
  }

  function resultOf(ours: CommandResult, theirs: CommandResult) {
    expectBothDone(ours, theirs);
    return JSON.parse(ours.stdout) as Record<string, unknown>;
  }

  async function succeeds(client: string): Promise<void> {
    const { exitCode, stdout, stderr } = await rig().exec(client);
    expect(exitCode, `${stdout}${stderr}`).toBe(0);
  }

  for (const { size, ...where } of cells) {
    // Each message of many packets is another chance for the requester of Soft-RoCE to stand still.
    const iterations = size > 10_000 ? 20 : 200;
    const facts = { tool: 'ibv_rc_pingpong', family: where.family, mtu: 1024, what: `${size} bytes` };
    const asClientOfIt = async () => {
      const result = await asClient({ ...where, size, mtu: 1024, iterations });
      expect(result).toMatchObject({ role: 'client', iterations, sizeBytes: size, verified: true });
      expect(result['peer']).toBe(where.family === 4 ? rig().guests[0].ip4 : rig().guests[0].ip6);
    };
    const asServerOfIt = async () => {
      const result = await asServer({ ...where, size, mtu: 1024, iterations });
      expect(result).toMatchObject({ role: 'server', iterations, sizeBytes: size, verified: true });
    };
    cell({ ...facts, role: 'client' }, asClientOfIt, AGAIN);
    cell({ ...facts, role: 'server' }, asServerOfIt, AGAIN);
  }

  for (const mtu of [256, 512, 2048, 4096]) {
    cell({ tool: 'ibv_rc_pingpong', role: 'both', family: 4, mtu, what: '10000 bytes' }, async () => {
      const where = { family: 4, gidIndex: 1, size: 10_000, mtu, iterations: 100 } as const;
      expect(await asClient(where)).toMatchObject({ verified: true });
      expect(await asServer(where)).toMatchObject({ verified: true });
    });
  }

  for (const family of [4, 6] as const) {
    const facts = { tool: 'ibv_srq_pingpong', family, what: 'sixteen queue pairs' };
    const numbers = ['-n', '200'];
    const theirs = ['ibv_srq_pingpong', '-g', family === 4 ? '1' : '2', ...numbers].join(' ');
    const expected = { queuePairs: 16, iterations: 200, sizeBytes: 4096 };
    const bind = () => ['--bind', family === 4 ? rig().hostSide.ip4 : rig().hostSide.ip6];
    cell({ ...facts, role: 'client' }, async () => {
      const server = await rig().background('server', theirs);
      await rig().listening(18515);
      const ours = ['srq-pingpong', rig().guests[0].ip4, ...bind(), ...numbers, '-c', '--json'];
      expect(await jsonResult(startRocev2(rig(), ours))).toMatchObject({ ...expected, verified: true });
      expect((await server.wait()).exitCode).toBe(0);
    });
    // Without -c: the client does not mark its first message on each queue pair.
    cell({ ...facts, role: 'server' }, async () => {
      const server = startRocev2(rig(), ['srq-pingpong', ...bind(), ...numbers, '--json']);
      await saysOnStderr(server, 'waiting for a client');
      await succeeds(`${theirs} ${rig().hostSide.ip4}`);
      expect(await jsonResult(server)).toMatchObject(expected);
    });
  }

  for (const direction of ['to1', 'from1'] as const) {
    const what = `every 50th packet ${direction === 'to1' ? 'to' : 'from'} the guest lost`;
    cell(
      { tool: 'ibv_rc_pingpong', role: 'both', family: 4, mtu: 1024, what },
      async () => {
        const loss = await rig().loss({ every: 50, direction });
        try {
          const where = { family: 4, gidIndex: 1, size: 20_000, mtu: 1024, iterations: 50 } as const;
          expect(await asClient(where)).toMatchObject({ verified: true });
          expect(await asServer(where)).toMatchObject({ verified: true });
        } finally {
          expect(await loss.stop()).toBeGreaterThan(0);
        }
      },
      LAST_ACK_LOST,
    );
  }

  test('wrong contents are found: the first message of a peer that does not mark its pages; then it echoes ours', async () => {
    const server = startRocev2(rig(), ['pingpong', '-n', '10', '-c']);
    await saysOnStderr(server, 'waiting for a client');
    await succeeds(`ibv_rc_pingpong -g 1 -n 10 ${rig().hostSide.ip4}`);
    const { exitCode, stderr } = await server.wait();
    expect(exitCode).toBe(4);
    expect(stderr).toContain('invalid data in 1 of 10 messages');
  });

  test('a peer without a GID is told what it lacks', async () => {
    const server = startRocev2(rig(), ['pingpong', '-n', '10']);
    await saysOnStderr(server, 'waiting for a client');
    const { exitCode } = await rig().exec(`timeout 5 ibv_rc_pingpong -n 10 ${rig().hostSide.ip4}`);
    expect(exitCode).not.toBe(0);
    const { stderr } = await server.wait();
    expect(stderr).toContain('-g');
  });
});
