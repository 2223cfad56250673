/**
 * What is tried again, and how often, between us and Soft-RoCE: receivers that are not ready, peers that have fallen silent, a guest
 * that dies.
 */

import { expect } from 'vitest';
import { cell } from './support/cell.js';
import { describeOnRig, describeWithRig } from './support/describe-on-rig.js';
import { Rig, RigFailure } from './support/rig.js';
import { fillSum, rigverbsTowardsUs, runVerbs, startOurVerbs, verbsOutcome } from './support/verbs-pair.js';

const SUCCESS = 0;
const WR_FLUSH_ERR = 5;
const RETRY_EXC_ERR = 12;
const RNR_RETRY_EXC_ERR = 13;

const tool = 'rigverbs';

await describeWithRig('retries between us and Soft-RoCE', { mtu: 4200 }, (rig) => {
  for (const role of ['client', 'server'] as const) {
    for (const { family, mtu } of [
      { family: 4, mtu: 1024 },
      { family: 6, mtu: 4096 },
    ] as const) {
      cell({ tool, role, family, mtu, what: 'RNR: receives come late' }, async () => {
        const before = await rig().counters();
        const { responder, ours, theirs } = await runVerbs(rig(), {
          role,
          family,
          options: `-m ${mtu}`,
          requester: {
            operations: 'fill:3 sync +send:10 +send:20000 +write:9000 +writeimm:5000:7 +send:30 drain sync',
          },
          responder: {
            options: '-n 0',
            // timer: how late the receives come
            operations: 'sync sleep:100 post:1 recv:1 sleep:100 post:3 recv:3 sync sum:9000',
          },
        });
        expect([theirs.exitCode, ours.exitCode], theirs.text + ours.text).toEqual([0, 0]);
        expect(responder.receives.map(({ len }) => Number(len))).toEqual([10, 20_000, 5000, 30]);
        expect(responder.receives[1]?.['fnv']).toBe(fillSum(20_000, 3));
        expect(responder.sums).toEqual([fillSum(9000, 3)]);
        const after = await rig().counters();
        if (role === 'client') {
          expect(ours.counters['rnr_nak_received']).toBeGreaterThan(0);
          expect(after.send_rnr_err).toBeGreaterThan(before.send_rnr_err);
        } else {
          expect(ours.counters['out_of_buffer']).toBeGreaterThan(0);
          expect(after.rcvd_rnr_err).toBeGreaterThan(before.rcvd_rnr_err);
        }
      });

      cell({ tool, role, family, mtu, what: 'RNR: receives never come' }, async () => {
        const { requester, responder, ours, theirs } = await runVerbs(rig(), {
          role,
          family,
          options: `-e -m ${mtu}`,
          requester: { options: '-R 3', operations: 'fill:3 +write:100 +send:10 +send:20 drain sync' },
          responder: { options: '-n 0', operations: 'sync sum:100' },
        });
        expect([theirs.exitCode, ours.exitCode], theirs.text + ours.text).toEqual([0, 0]);
        expect(requester.sends.map(({ status }) => status)).toEqual([SUCCESS, RNR_RETRY_EXC_ERR, WR_FLUSH_ERR]);
        expect(responder.sums).toEqual([fillSum(100, 3)]);
        if (role === 'client') expect(ours.counters['rnr_nak_retry_err']).toBe(1);
      });

      for (const lost of ['requests', 'answers'] as const) {
        for (const request of ['write:5000', 'read:5000', 'faa:1']) {
          const run = async () => {
            // The exchange is over TCP, which the rule does not touch.
            const towardsGuest = (role === 'client') === (lost === 'requests');
            const loss = await rig().loss({ every: 1, direction: towardsGuest ? 'to1' : 'from1' });
            const { requester, ours, theirs } = await runVerbs(rig(), {
              role,
              family,
              options: `-e -m ${mtu}`,
              requester: { options: '-k 2 -t 14', operations: `+${request} +send:10 drain sync` },
              responder: { operations: 'sync' },
            }).finally(() => loss.stop());
            expect([theirs.exitCode, ours.exitCode], theirs.text + ours.text).toEqual([0, 0]);
            expect(requester.sends.map(({ status }) => status)).toEqual([RETRY_EXC_ERR, WR_FLUSH_ERR]);
            if (role === 'client')
              expect(ours.counters).toMatchObject({ local_ack_timeout_err: 3, retry_exceeded_err: 1 });
          };
          const what = `retries run out: ${request}, all ${lost} lost`;
          cell({ tool, role, family, mtu, what }, run, { group: `all ${lost} lost` });
        }
      }
    }
  }
});

await describeOnRig('a process that is busy', 'bridge', () => {
  // Why rxe's `completer_retry_err` moves where nothing is lost: a NIC on the program's event loop answers when that is free.
  cell(
    { tool, role: 'server', family: 4, mtu: 1024, what: 'an event loop blocked beyond the ACK timeout' },
    async () => {
      await using rig = await Rig.start();
      const timeoutsOf = async (engine: 'inline' | 'worker') => {
        const before = await rig.counters();
        const { requester, responder, ours, theirs } = await runVerbs(rig, {
          role: 'server',
          family: 4,
          engine,
          options: '-t 19', // 2.1 s
          requester: { operations: 'fill:3 sync +write:500000*2 drain sync' },
          responder: { operations: 'sync block:6000 sync sum:500000' },
        });
        expect([theirs.exitCode, ours.exitCode], theirs.text + ours.text).toEqual([0, 0]);
        expect(requester.sends.map(({ status }) => status)).toEqual([SUCCESS, SUCCESS]);
        expect(responder.sums).toEqual([fillSum(500_000, 3)]);
        return (await rig.counters()).completer_retry_err - before.completer_retry_err;
      };
      expect(await timeoutsOf('inline')).toBeGreaterThan(0);
      expect(await timeoutsOf('worker')).toBe(0);
    },
  );
});

await describeOnRig('a guest that dies', 'bridge', () => {
  for (const [family, request] of [
    [4, 'write'],
    [6, 'read'],
  ] as const) {
    const run = async () => {
      await using rig = await Rig.start();
      const us = startOurVerbs(rig, family, `-e -t 14 +${request}:1000000*1000 drain`);
      await rig.background('peer', rigverbsTowardsUs(rig, family, 'sync'));
      await us.waitForOutput(/SC id=3 /, 60_000);
      // timer: a command that the power does not outlast
      await expect(rig.exec('echo o > /proc/sysrq-trigger; sleep 60')).rejects.toThrow(RigFailure);
      const { sends, text } = verbsOutcome(await us.wait(100_000));
      const statuses = sends.map(({ status }) => status);
      const failed = statuses.findIndex((status) => status !== SUCCESS);
      expect(sends, text).toHaveLength(1000);
      expect(statuses.slice(failed, failed + 2)).toEqual([RETRY_EXC_ERR, WR_FLUSH_ERR]);
    };
    const what = `the guest loses power during ${request}s`;
    cell({ tool, role: 'client', family, mtu: 1024, what }, run, { group: 'loss of power' });
  }
});
