/** A disk over a cluster of extent nodes, all of them processes, under the programs people use disks with. Nodes, the manager and the owner are killed meanwhile. */

import { afterAll, test } from 'vitest';
import { Program } from '../e2e/executable.js';
import { eventually } from '../support/eventually.js';
import { timesOfRound } from '../support/rounds.js';
import * as acceptance from './support/acceptance.js';
import { describeStack, type StackPlan } from './support/stack.js';

const KILLS = timesOfRound(5);
const RESTART_LIMIT_MS = 60_000;
const STATE = `fio --ioengine=nbd --uri="$U" --verify_fatal=1 --output-format=terse --name=vs --rw=randwrite --bs=4k --iodepth=8 --size=8m --verify=crc32c --randseed=42`;

let cluster: Program | undefined;

/** Makes the disk the first time; the cluster stays when its owner is started anew. */
const overCluster: StackPlan = async (folder, listen, launch) => {
  if (cluster === undefined) {
    cluster = Program.rocev2(
      'extents',
      'up',
      '--dir',
      `${folder}/cluster`,
      '-p',
      '0',
      '--extent-size',
      '4MiB',
      '--restart',
    );
    await cluster.writes('stderr', /Ctrl-C ends it/);
    const create = Program.rocev2(
      'extents',
      'disk',
      'create',
      'vol',
      '--size',
      `${acceptance.DISK_BYTES}`,
      '--manager',
      manager(),
    );
    if ((await create.ended()) !== 0) throw new Error(create.stderr);
  }
  await launch('nbd', '--listen', listen, '--backend', `stream:vol@${manager()}?take-over`, '--json');
};

function manager(): string {
  return /the manager is at (\S+),/.exec(cluster!.stderr)![1];
}

/** Process of the manager, or of the node in a folder, as it runs now. */
function processOf(what: string): number {
  const place = what === 'manager' ? '^the manager is at .*' : `^node .*/${what}`;
  return Number([...cluster!.stderr.matchAll(new RegExp(`${place}, process (\\d+)$`, 'gm'))].at(-1)![1]);
}

/** Kills a process of the cluster; resolves when another one is in its place. */
async function kill(what: string): Promise<void> {
  const before = processOf(what);
  process.kill(before, 'SIGKILL');
  await eventually(() => processOf(what) !== before, { limitMs: RESTART_LIMIT_MS, everyMs: 100 });
}

describeStack('a disk over a cluster', overCluster, (stack) => {
  afterAll(async () => {
    cluster?.kill('SIGINT');
    await cluster?.ended();
    cluster = undefined;
  });

  acceptance.identity(stack);
  acceptance.qemuPatterns(stack);
  acceptance.verifiedFio(stack, ['v4', 'v6']);

  test(`fio verifies what it writes while nodes and the manager are killed, ${KILLS} times in all`, async () => {
    const victims = ['node1', 'node2', 'manager', 'node3', 'node4'].slice(-KILLS);
    let isOver = false;
    const killing = (async () => {
      for (const victim of victims) await kill(victim);
      isOver = true;
    })();
    while (!isOver) await stack().succeeds(acceptance.FIO_JOBS.v4);
    await killing;
    await stack().succeeds(acceptance.FIO_JOBS.v4);
  });

  test('what was acknowledged before the owner was killed is there for the next one', async () => {
    await stack().succeeds(`${STATE} --do_verify=0 --verify_state_save=1`);
    await stack().killFirst();
    await stack().succeeds(`${STATE} --verify_only=1 --verify_state_load=1`);
  });

  acceptance.fileSystems(stack);
  acceptance.restarts(stack);
});
