/**
 * One particular packet lost between us and Soft-RoCE, whatever it is; packets doubled, and packets out of order. Each has had a bug of
 * its own in some stack: atomics executed twice, READs resumed at the wrong address, gaps reported again and again.
 */

import { expect } from 'vitest';
import { cell } from './support/cell.js';
import { describeWithRig } from './support/describe-on-rig.js';
import { mixedTransfer } from './support/mixed-transfer.js';

const tool = 'rigverbs';
const BYTES = 20_000;

const LOST = [
  'ACKNOWLEDGE',
  'RDMA_WRITE_FIRST',
  'RDMA_WRITE_MIDDLE',
  'RDMA_WRITE_LAST',
  'SEND_FIRST',
  'SEND_LAST',
  'RDMA_READ_REQUEST',
  'RDMA_READ_RESPONSE_FIRST',
  'RDMA_READ_RESPONSE_MIDDLE',
  'RDMA_READ_RESPONSE_LAST',
  'RDMA_READ_RESPONSE_ONLY',
  'FETCH_ADD',
  'ATOMIC_ACKNOWLEDGE',
];
/** What follows it makes the responder say NAK 0x60. */
const REPORTED = 'RDMA_WRITE_FIRST';
/** A later acknowledgement may stand in for it. */
const UNNOTICED = 'one ACKNOWLEDGE lost';

await describeWithRig('single faults between us and Soft-RoCE', { mtu: 4200 }, (rig) => {
  for (const role of ['client', 'server'] as const) {
    for (const { family, mtu } of [
      { family: 4, mtu: 1024 },
      { family: 6, mtu: 4096 },
    ] as const) {
      const options = `-m ${mtu}`;

      // Over IPv6 all in one transfer: the family changes addresses, not the protocol.
      const cases = family === 4 ? LOST.map((opcode) => [opcode]) : [LOST];
      for (const opcodes of cases) {
        const what = opcodes.length === 1 ? `one ${opcodes[0]} lost` : 'one packet of each kind lost';
        const run = async () => {
          const before = await rig().counters();
          const faults = opcodes.map((opcode) => `opcode=${opcode}:once`).join(';');
          const { ours } = await mixedTransfer(rig(), { role, family, options, faults }, BYTES);
          const after = await rig().counters();
          const theirRetries =
            after.rcvd_seq_err + after.completer_retry_err - before.rcvd_seq_err - before.completer_retry_err;
          const retries = role === 'client' ? (ours.counters['tx_retransmitted'] as number) : theirRetries;
          if (what !== UNNOTICED) expect(retries).toBeGreaterThan(0);
          if (!opcodes.includes(REPORTED)) return;
          expect(ours.counters[role === 'client' ? 'packet_seq_err' : 'resp_nak_sequence']).toBeGreaterThan(0);
        };
        cell({ tool, role, family, mtu, what }, run, { group: opcodes.length === 1 ? 'one packet lost' : what });
      }

      cell({ tool, role, family, mtu, what: 'packets doubled' }, async () => {
        const faults = 'host>wire:duplicate=0.1;wire>host:duplicate=0.1';
        await mixedTransfer(rig(), { role, family, options, faults }, 100_000);
      });

      cell({ tool, role, family, mtu, what: 'packets out of order' }, async () => {
        const faults = 'host>wire:reorder=0.05,2;wire>host:reorder=0.05,2';
        await mixedTransfer(rig(), { role, family, options, faults }, 100_000);
      });
    }
  }
});
