/** A disk over a cluster of extent nodes, all of them processes, under the programs people use disks with. Nodes, the manager and the owner are killed meanwhile. */

import { afterAll, test } from 'vitest';
import { timesOfRound } from '../support/rounds.js';
import * as acceptance from './support/acceptance.js';
import { DiskCluster } from './support/cluster.js';
import { describeStack, type StackPlan } from './support/stack.js';

const KILLS = timesOfRound(5);
const RESTART_LIMIT_MS = 60_000;
const STATE = `fio --ioengine=nbd --uri="$U" --verify_fatal=1 --output-format=terse --name=vs --rw=randwrite --bs=4k --iodepth=8 --size=8m --verify=crc32c --randseed=42`;

let cluster: DiskCluster | undefined;

/** Makes the disk the first time; the cluster stays when its owner is started anew. */
const overCluster: StackPlan = async (folder, listen, launch) => {
  cluster ??= await DiskCluster.start(`${folder}/cluster`, {
    size: `${acceptance.DISK_BYTES}`,
    upFlags: ['--extent-size', '4MiB'],
    restartLimitMs: RESTART_LIMIT_MS,
  });
  await launch('nbd', '--listen', listen, '--backend', cluster.backend, '--json');
};

describeStack('a disk over a cluster', overCluster, (stack) => {
  afterAll(async () => {
    await cluster?.end();
    cluster = undefined;
  });

  acceptance.identity(stack);
  acceptance.qemuPatterns(stack);
  acceptance.verifiedFio(stack, ['v4', 'v6']);

  test(`fio verifies what it writes while nodes and the manager are killed, ${KILLS} times in all`, async () => {
    const victims = ['node1', 'node2', 'manager', 'node3', 'node4'].slice(-KILLS);
    let isOver = false;
    const killing = (async () => {
      for (const victim of victims) await cluster!.kill(victim);
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
