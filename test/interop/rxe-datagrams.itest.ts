/** UD between our queue pairs and Soft-RoCE's. */

import { expect } from 'vitest';
import { cell } from './support/cell.js';
import { describeWithRig } from './support/describe-on-rig.js';
import { fillSum, runVerbs } from './support/verbs-pair.js';

const GRH_BYTES = 40;
const SIZES = [0, 1, 3, 1000, 1024, 4093, 4096];

const tool = 'rigverbs';

await describeWithRig('datagrams between us and Soft-RoCE', { mtu: 4200 }, (rig) => {
  for (const role of ['client', 'server'] as const) {
    for (const family of [4, 6] as const) {
      cell({ tool, role, family, mtu: 4096, what: 'UD SEND, SEND with immediate' }, async () => {
        const sends = SIZES.map((size) => `send:${size}`).join(' ');
        const { responder, ours, theirs } = await runVerbs(rig(), {
          role,
          family,
          options: '-q ud -r 4096',
          requester: { operations: `fill:3 ${sends} sendimm:10:0xcafe sync` },
          responder: { operations: `recv:${SIZES.length + 1} sync` },
        });
        expect([theirs.exitCode, ours.exitCode], theirs.text + ours.text).toEqual([0, 0]);
        const sizes = [...SIZES, 10];
        expect(responder.receives.map(({ len }) => Number(len))).toEqual(sizes.map((size) => size + GRH_BYTES));
        expect(responder.receives.map(({ fnv }) => fnv)).toEqual(sizes.map((size) => fillSum(size, 3)));
        expect(responder.receives.at(-1)?.['imm']).toBe('0000cafe');
        expect(new Set(responder.receives.map(({ srcqp }) => srcqp)).size).toBe(1);
        if (role === 'server') {
          const guest = family === 4 ? rig().guests[0]?.ip4 : rig().guests[0]?.ip6;
          for (const { from } of responder.receives) expect(from).toBe(guest);
        }
      });

      cell({ tool, role, family, mtu: 4096, what: 'UD with a wrong Q_Key is dropped in silence' }, async () => {
        const before = await rig().counters();
        const { requester, ours, theirs } = await runVerbs(rig(), {
          role,
          family,
          options: '-q ud',
          requester: { operations: 'send:100 sync' },
          // timer: the word over TCP that it was sent may arrive before it
          responder: { options: '-Q 0x22222222', operations: 'sync sleep:100' },
        });
        expect([theirs.exitCode, ours.exitCode], theirs.text + ours.text).toEqual([0, 0]);
        expect(requester.sends.map(({ status }) => status)).toEqual([0]);
        if (role === 'server') expect(ours.counters['rx_drop_qkey']).toBe(1);
        else expect((await rig().counters()).rcvd_pkts).toBe(before.rcvd_pkts);
      });
    }
  }
});
