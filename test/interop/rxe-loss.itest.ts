/**
 * Packets lost and corrupted between us and Soft-RoCE: at both rates and in both directions every operation completes with its data
 * intact, across the wrap of the PSN too. Nothing may be lost where no rule drops.
 */

import { expect } from 'vitest';
import { cell } from './support/cell.js';
import { describeWithRig } from './support/describe-on-rig.js';
import { type MixedPlan, mixedTransfer } from './support/mixed-transfer.js';

const tool = 'rigverbs';

/** Enough packets each way that the rule strikes, whatever the dice. */
const RATES = [
  { one: 7, bytes: 40_000 },
  { one: 256, bytes: 3_000_000 },
];

const broken = { 11: 'fault rules of ours damage packets before they leave' };

await describeWithRig('loss between us and Soft-RoCE', { mtu: 4200, broken }, (rig) => {
  const mixed = (plan: MixedPlan, bytes: number) => mixedTransfer(rig(), plan, bytes);

  for (const role of ['client', 'server'] as const) {
    for (const { family, mtu } of [
      { family: 4, mtu: 1024 },
      { family: 6, mtu: 4096 },
    ] as const) {
      for (const { one, bytes } of RATES) {
        for (const direction of ['to1', 'from1'] as const) {
          const where = direction === 'to1' ? 'from us' : 'to us';
          const run = async () => {
            const loss = await rig().loss({ random: one, direction });
            let lost = 0;
            try {
              await mixed({ role, family, options: '-m 1024' }, bytes);
            } finally {
              lost = await loss.stop();
            }
            expect(lost).toBeGreaterThan(0);
          };
          const what = `one packet in ${one} ${where} lost`;
          cell({ tool, role, family, mtu: 1024, what }, run, { group: `one packet in ${one} lost` });
        }
      }

      cell({ tool, role, family, mtu, what: 'the PSN wraps around' }, async () => {
        await mixed({ role, family, options: `-m ${mtu} -p 0xfffff0` }, 200_000);
      });

      cell({ tool, role, family, mtu: 1024, what: 'the PSN wraps around while packets are lost' }, async () => {
        const loss = await rig().loss({ random: 20 });
        try {
          await mixed({ role, family, options: '-m 1024 -p 0xffffc0' }, 100_000);
        } finally {
          expect(await loss.stop()).toBeGreaterThan(0);
        }
      });

      cell({ tool, role, family, mtu: 1024, what: 'corrupted packets are dropped at both ends' }, async () => {
        const before = await rig().counters();
        const faults = 'host>wire:corrupt=0.05;wire>host:corrupt=0.05';
        const { ours } = await mixed({ role, family, options: '-m 1024', faults }, 200_000);
        const accepted = (await rig().counters()).rcvd_pkts - before.rcvd_pkts;
        expect(accepted).toBeLessThan(ours.counters['tx_packets'] as number);
        expect(ours.counters['rx_icrc_errors']).toBeGreaterThan(0);
      });

      cell({ tool, role, family, mtu, what: 'nothing is repeated where nothing is lost' }, async () => {
        const before = await rig().counters();
        const { ours } = await mixed({ role, family, options: `-m ${mtu} -t 20` }, 1_000_000);
        const after = await rig().counters();
        for (const name of ['duplicate_request', 'out_of_seq_request', 'rcvd_seq_err', 'completer_retry_err'] as const)
          expect(after[name] - before[name], name).toBe(0);
        expect(ours.counters).toMatchObject({ tx_retransmitted: 0, duplicate_request: 0, out_of_sequence: 0 });
      });
    }
  }
});
