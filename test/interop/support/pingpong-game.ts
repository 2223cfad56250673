/** One game of `rocev2 pingpong` against ibv_rc_pingpong in the guest. One that stops in the middle fails with what the guest's wire says about it. */

import { keepCapture } from '../../../packages/inspect/test/audit/capture-file.js';
import { IpAddress } from '../../../src/packet/address.js';
import { CaptureStream } from '../../../src/port/capture/capture-stream.js';
import type { RunningCommand } from './command.js';
import { expectBothDone } from './last-acknowledgement.js';
import type { GuestJob, Rig } from './rig.js';
import { saysOnStderr, startRocev2 } from './rocev2.js';
import { type Game, type Player, StalledGame } from './stalled-game.js';

/** Of rdma-core's ping-pong programs. */
export const PINGPONG_PORT = 18515;
/** Ours gives up after 30 s without a message. */
const SILENT = /the peer has been silent/;
const LIMIT_MS = 90_000;

export interface PingpongGame {
  /** Ours. */
  readonly role: 'client' | 'server';
  readonly family: 4 | 6;
  /** Bytes of a message. */
  readonly size: number;
  /** Path MTU in bytes. */
  readonly mtu: number;
  /** Messages each way. */
  readonly iterations: number;
}

/** The document that ours prints. Rejects unless both ends end well; of a stalled game with the verdict of {@link StalledGame}, from the capture that is being written. */
export async function playPingpong(
  rig: Rig,
  captureFile: string,
  game: PingpongGame,
): Promise<Record<string, unknown>> {
  const table = await sitDown(rig, game);
  try {
    const ours = await table.ours.wait(LIMIT_MS);
    if (SILENT.test(ours.stderr)) throw new Error(await whyStalled(rig, captureFile, game, table));
    expectBothDone(ours, await table.theirs.wait());
    return JSON.parse(ours.stdout) as Record<string, unknown>;
  } finally {
    await table.ours.stop();
    await table.theirs.kill();
  }
}

/** Both ends of a game. */
export interface Table {
  readonly ours: RunningCommand;
  readonly theirs: GuestJob;
}

/** Starts both ends. */
export async function sitDown(rig: Rig, { role, family, size, mtu, iterations }: PingpongGame): Promise<Table> {
  const numbers = ['-s', size, '-m', mtu, '-n', iterations].map(String);
  const args = ['--bind', family === 4 ? rig.hostSide.ip4 : rig.hostSide.ip6, ...numbers, '-c', '--json'];
  // Line by line: what is in its buffer when it is ended would be lost.
  const stock = `stdbuf -oL ibv_rc_pingpong -g ${family === 4 ? 1 : 2} ${numbers.join(' ')}`;
  if (role === 'client') {
    const theirs = await rig.background('pingpong', stock);
    await rig.listening(PINGPONG_PORT);
    return { theirs, ours: startRocev2(rig, ['pingpong', rig.guests[0].ip4, ...args]) };
  }
  const ours = startRocev2(rig, ['pingpong', ...args]);
  await saysOnStderr(ours, 'waiting for a client');
  return { ours, theirs: await rig.background('pingpong', `${stock} -c ${rig.hostSide.ip4}`) };
}

/** The verdict, and all that a reader of the failure may want; the capture is kept. Asked before the guest's end is told to stop. */
async function whyStalled(rig: Rig, captureFile: string, game: PingpongGame, { ours, theirs }: Table): Promise<string> {
  const kept = keepCapture(captureFile, 'stalled-game');
  const verdict = await verdictOn(kept, theirs, game);
  const said = await theirs.log();
  const state = await rig.exec(
    'rdma resource show qp type RC; cd /sys/class/infiniband/rxe0/ports/1/hw_counters && grep -v "^0$" *',
  );
  return [
    verdict,
    `the capture is kept as ${kept}`,
    `ours: ${ours.stdout}${ours.stderr}`,
    `theirs: ${said.stdout}${said.stderr}`,
    // sq-psn is what it would send next, rq-psn what it expects.
    `the guest's queue pair, and counters since it booted:\n${psnsInHex(state.stdout)}${state.stderr}`,
  ].join('\n');
}

/** What {@link StalledGame} makes of a capture that is being written, by now. */
export async function verdictOn(captureFile: string, theirs: GuestJob, game: PingpongGame): Promise<string> {
  const players = playersOf((await theirs.log()).stdout);
  if (players === undefined) return 'the game has not begun: the ends have not told each other their addresses';
  const { role, iterations } = game;
  const judge = new StalledGame({ ...players, client: role === 'client' ? 'ours' : 'guest', messages: iterations });
  for await (const chunk of (await CaptureStream.open(captureFile)).chunks()) for (const one of chunk) judge.take(one);
  return judge.verdict(BigInt(Date.now()) * 1_000_000n);
}

/** As the verdict writes them. */
function psnsInHex(state: string): string {
  return state.replace(/(?<=-psn )\d+/g, (psn) => Number(psn).toString(16).padStart(6, '0'));
}

/** Who plays, as ibv_rc_pingpong in the guest has printed it; undefined before it knows. Its queue pair has a number that no earlier game had. */
export function playersOf(stdout: string): Pick<Game, 'ours' | 'guest'> | undefined {
  const [guest, ours] = ['local', 'remote'].map((end): Player | undefined => {
    const line = new RegExp(`${end} address: .* QPN 0x([0-9a-f]+), PSN 0x([0-9a-f]+), GID (\\S+)`).exec(stdout);
    if (line === null) return undefined;
    const [, qpn, psn, gid] = line;
    return {
      address: IpAddress.parse(gid!).text,
      qpn: Number.parseInt(qpn!, 16),
      startPsn: Number.parseInt(psn!, 16),
    };
  });
  return guest && ours && { guest, ours };
}
