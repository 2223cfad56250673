/** `rocev2 pingpong` against ibv_rc_pingpong on Linux Soft-RoCE: both roles, both IP versions, one byte to a mebibyte, with and without loss. */

import process from 'node:process';
import { expect, test } from 'vitest';
import { eventually } from '../support/eventually.js';
import { cell } from './support/cell.js';
import { describeWithRig } from './support/describe-on-rig.js';
import { LAST_ACKNOWLEDGEMENT } from './support/last-acknowledgement.js';
import {
  PINGPONG_PORT,
  type PingpongGame,
  playPingpong,
  sitDown,
  type Table,
  verdictOn,
} from './support/pingpong-game.js';
import { jsonResult, saysOnStderr, startRocev2 } from './support/rocev2.js';
import { STANDS_STILL } from './support/stalled-game.js';

const FAMILIES = [4, 6] as const;
const SIZES = [1, 3, 1024, 1025, 4096, 65_536, 2 ** 20];

/** Soft-RoCE can stand still for ever: docs/how-to/talk-to-linux.md. Only a game that the guest's wire shows to be in its hands is played again. */
const STOOD_STILL = { retry: { count: 1, condition: new RegExp(STANDS_STILL) } };
/** The ACK of the last message may be among the packets that are lost, and who should send it again has ended by then: one of fifty. */
const LAST_ACK_LOST = { retry: { count: 2, condition: new RegExp(`${STANDS_STILL}|${LAST_ACKNOWLEDGEMENT}`) } };

await describeWithRig('rocev2 pingpong', { mtu: 4200 }, (rig, captureFile) => {
  const cells = FAMILIES.flatMap((family) => SIZES.map((size) => ({ family, size })));
  const play = (game: PingpongGame) => playPingpong(rig(), captureFile(), game);

  async function succeeds(client: string): Promise<void> {
    const { exitCode, stdout, stderr } = await rig().exec(client);
    expect(exitCode, `${stdout}${stderr}`).toBe(0);
  }

  for (const { family, size } of cells) {
    // Each message of many packets is another chance for the requester of Soft-RoCE to stand still.
    const iterations = size > 10_000 ? 20 : 200;
    for (const role of ['client', 'server'] as const) {
      const facts = { tool: 'ibv_rc_pingpong', role, family, mtu: 1024, what: `${size} bytes` } as const;
      const run = async () => {
        const result = await play({ role, family, size, mtu: 1024, iterations });
        expect(result).toMatchObject({ role, iterations, sizeBytes: size, verified: true });
        if (role === 'client') expect(result['peer']).toBe(family === 4 ? rig().guests[0].ip4 : rig().guests[0].ip6);
      };
      cell(facts, run, { ...STOOD_STILL, group: size > 10_000 ? 'long messages' : 'short messages' });
    }
  }

  const bothRoles = async (where: Omit<PingpongGame, 'role'>) => {
    for (const role of ['client', 'server'] as const) {
      expect(await play({ role, ...where })).toMatchObject({ role, verified: true });
    }
  };

  for (const mtu of [256, 512, 2048, 4096]) {
    const facts = { tool: 'ibv_rc_pingpong', role: 'both', family: 4, mtu, what: '10000 bytes' } as const;
    cell(facts, () => bothRoles({ family: 4, size: 10_000, mtu, iterations: 100 }), STOOD_STILL);
  }

  for (const family of [4, 6] as const) {
    const facts = { tool: 'ibv_srq_pingpong', family, what: 'sixteen queue pairs' };
    const numbers = ['-n', '200'];
    const theirs = ['ibv_srq_pingpong', '-g', family === 4 ? '1' : '2', ...numbers].join(' ');
    const expected = { queuePairs: 16, iterations: 200, sizeBytes: 4096 };
    const bind = () => ['--bind', family === 4 ? rig().hostSide.ip4 : rig().hostSide.ip6];
    cell({ ...facts, role: 'client' }, async () => {
      const server = await rig().background('server', theirs);
      await rig().listening(PINGPONG_PORT);
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
          await bothRoles({ family: 4, size: 20_000, mtu: 1024, iterations: 50 });
        } finally {
          expect(await loss.stop()).toBeGreaterThan(0);
        }
      },
      { ...LAST_ACK_LOST, group: 'lost packets' },
    );
  }

  // Twins: who has to move when a game stops. A guest whose program is stopped goes on acknowledging, its NIC is in its kernel; with our program stops our NIC.
  const whenStopped = async (who: (game: Table) => unknown, verdict: RegExp) => {
    const game = { role: 'server', family: 4, size: 10_000, mtu: 256, iterations: 1_000_000 } as const;
    const table = await sitDown(rig(), game);
    try {
      const { rcvd_pkts: before } = await rig().counters();
      await eventually(async () => (await rig().counters()).rcvd_pkts > before + 1000);
      await who(table);
      const asked = { interval: 1000, timeout: 60_000 };
      await expect.poll(() => verdictOn(captureFile(), table.theirs, game), asked).toMatch(verdict);
    } finally {
      await table.ours.stop();
      await table.theirs.kill();
    }
  };
  const stopped = { tool: 'ibv_rc_pingpong', role: 'server', family: 4, mtu: 256 } as const;
  const group = 'stopped games';
  cell(
    { ...stopped, what: 'our program is stopped: so we have to move' },
    () => whenStopped(({ ours }) => process.kill(ours.pid!, 'SIGSTOP'), /^(ours has not answered PSN|it is our turn)/),
    { group },
  );
  cell(
    { ...stopped, what: "the guest's program is stopped: so it stands still" },
    () => whenStopped(() => rig().exec('kill -STOP $(pidof ibv_rc_pingpong)'), new RegExp(`^${STANDS_STILL}`)),
    { group },
  );

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
