/**
 * Programs on a file system on a disk over a cluster of extent nodes, all of them processes, while nodes are killed, one stands still, one loses its folder, and the manager is killed: nothing
 * of it reaches them, and redundancy comes back by itself. A short run here, in one round of five; ten minutes, with PostgreSQL, and with three managers over three members of etcd, of which
 * the leading ones are killed, by `npm run test:disk-cluster`.
 */

import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { afterAll, expect, test } from 'vitest';
import { openExtents } from '../../packages/extents/src/index.js';
import { EtcdMembers, WHY_NO_ETCD } from '../../packages/extents/test/etcd-members.js';
import { openDevice } from '../../src/verbs/open-device.js';
import { eventually } from '../support/eventually.js';
import { isTurn, ROUNDS } from '../support/rounds.js';
import { DiskCluster } from './support/cluster.js';
import { MOUNTED_PROGRAMS } from './support/mounted-programs.js';
import { describeStack, type StackPlan } from './support/stack.js';
import { mountRefusal } from './support/tools.js';

const SECONDS = Number(process.env['OUTAGE_SECONDS'] ?? 40);
const HAS_DATABASE = process.env['OUTAGE_DATABASE'] !== undefined;
const HAS_ETCD = process.env['OUTAGE_ETCD'] !== undefined && WHY_NO_ETCD === undefined;
const IS_LONG = SECONDS >= 300;
const KILL_MS = IS_LONG ? 20_000 : 6_000;
const STOP_MS = IS_LONG ? 60_000 : 8_000;
const NODES = 5;
/** Setting up a database and checking it takes its time on a busy machine. */
const LIMIT_MS = (SECONDS + 900) * 1000;

let cluster: DiskCluster | undefined;
let etcd: EtcdMembers | undefined;

const overCluster: StackPlan = async (folder, listen, launch) => {
  const upFlags = ['--nodes', `${NODES}`, '--extent-size', '16MiB'];
  if (HAS_ETCD) {
    etcd = await EtcdMembers.start(`${folder}/etcd`, 3);
    upFlags.push('--managers', '3', '--metadata', `etcd:${etcd.endpoints.join()}`);
  }
  cluster = await DiskCluster.start(`${folder}/cluster`, { size: '1GiB', upFlags, restartLimitMs: LIMIT_MS });
  await launch('nbd', '--listen', listen, '--backend', cluster.backend, '--json');
};

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms)); // timer: how long something lasts

/** Resident memory and open files of the owner of the disk. */
function sizesOf(pid: number): { residentMiB: number; files: number } {
  const resident = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))!;
  return { residentMiB: Math.round(Number(resident[1]) / 1024), files: readdirSync(`/proc/${pid}/fd`).length };
}

const refusal = mountRefusal();
if (refusal !== undefined) console.warn(`skipped: failures of a cluster under a mounted file system: ${refusal}`);
if (process.env['OUTAGE_ETCD'] !== undefined && !HAS_ETCD) console.warn(`one manager, without etcd: ${WHY_NO_ETCD}`);

describeStack('failures of a cluster', overCluster, (stack) => {
  afterAll(async () => {
    await cluster?.end();
    await etcd?.stop();
    cluster = undefined;
    etcd = undefined;
  }, LIMIT_MS);

  test.skipIf(refusal !== undefined || !isTurn(1, ROUNDS))(
    `${SECONDS} s with a node killed every ${KILL_MS / 1000} s, one stopped for ${STOP_MS / 1000} s, one emptied, and the manager killed${HAS_ETCD ? ', the leader of etcd, too' : ''}: no error, all checks clean, redundancy is back`,
    async () => {
      await using device = await openDevice({ address: '127.0.0.1', udpPort: 0 });
      await using client = await openExtents({ device, manager: cluster!.manager });
      const redundancy = async () => {
        const { nodes, extents } = await client.status();
        const up = nodes.filter(({ state }) => state === 'up').length;
        return up >= NODES && extents.underReplicated === 0 && extents.copying === 0;
      };
      const whole = () => eventually(() => redundancy().catch(() => false), { limitMs: LIMIT_MS, everyMs: 200 });
      const done = { kills: 0, stops: 0, emptied: 0, managers: 0, members: 0 };
      const owner = stack().gateway.process.pid!;
      const before = sizesOf(owner);
      let isOver = false;
      const stopOne = async () => {
        const pid = cluster!.processOf('node5');
        process.kill(pid, 'SIGSTOP');
        await pause(STOP_MS);
        process.kill(pid, 'SIGCONT');
        done.stops++;
      };
      const emptyOne = async () => {
        await whole(); // What it has is elsewhere, too.
        await cluster!.kill('node4', () => rmSync(`${stack().folder}/cluster/node4`, { recursive: true }));
        done.emptied++;
        await whole();
      };
      const killManager = async () => {
        let name = 'manager';
        const find = async () => {
          const leading = (await client.status()).managers.find(({ leads }) => leads);
          if (leading !== undefined) name = cluster!.managerAt(leading.address);
          return leading !== undefined;
        };
        if (HAS_ETCD) await eventually(find, { everyMs: 100 });
        await cluster!.kill(name);
        done.managers++;
      };
      const killMember = async () => {
        await etcd!.kill((await etcd!.leader())!); // Two of three are left.
        done.members++;
      };
      const failing = (async () => {
        const others = [stopOne, emptyOne, killManager, ...(HAS_ETCD ? [killMember] : [])];
        for (let round = 0; !isOver; round++) {
          const other = others.shift()?.();
          await pause(KILL_MS);
          await cluster!.kill(`node${1 + (round % 3)}`);
          done.kills++;
          await other; // One thing at a time besides: three nodes are left.
        }
        for (const rest of others) await rest();
      })();
      const flags = `export RUN_SECONDS=${SECONDS} OUTAGE_DATABASE=${HAS_DATABASE ? 1 : ''}`;
      let output: string;
      try {
        output = await stack().succeeds(`${flags}\n${MOUNTED_PROGRAMS}`, LIMIT_MS);
      } finally {
        isOver = true;
      }
      await failing;
      const startMs = performance.now();
      await whole();
      const wholeMs = Math.round(performance.now() - startMs);
      console.log(output.split('\n').slice(-40).join('\n'));
      const { counters } = await client.status();
      console.log({ ...done, wholeMs, before, after: sizesOf(owner), ...counters });
      expect(done).toMatchObject({ stops: 1, emptied: 1, managers: 1, members: HAS_ETCD ? 1 : 0 });
      expect(done.kills).toBeGreaterThan(1);
    },
    LIMIT_MS,
  );
});
