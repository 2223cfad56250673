/** Every RC operation between our verbs and Soft-RoCE's, as requester and as responder. */

import { expect } from 'vitest';
import { cell } from './support/cell.js';
import { describeWithRig } from './support/describe-on-rig.js';
import { fillSum, runVerbs, type VerbsOutcome, type VerbsPlan } from './support/verbs-pair.js';

const SIZES = [0, 1, 3, 1024, 1025, 4096, 4097, 65_536, 300_001];
const SWAPPED = 0x0102_0304_0506_0708n;
const OPCODE_RECV = '128';
const OPCODE_RECV_RDMA_WITH_IMM = '129';

await describeWithRig('every operation against Soft-RoCE', { mtu: 4200 }, (rig) => {
  for (const role of ['client', 'server'] as const) {
    for (const family of [4, 6] as const) {
      for (const mtu of [1024, 4096]) {
        const run = async (plan: Pick<VerbsPlan, 'requester' | 'responder' | 'options'>) => {
          const options = `-m ${mtu} ${plan.options ?? ''}`;
          const result = await runVerbs(rig(), { role, family, ...plan, options });
          const { requester, responder, ours, theirs } = result;
          expect([theirs.exitCode, ours.exitCode], `${theirs.text}\n${ours.text}`).toEqual([0, 0]);
          expect(requester.sends.every(({ status }) => status === 0)).toBe(true);
          return { requester, responder };
        };
        const rigverbs = (what: string, body: () => Promise<void>) =>
          cell({ tool: 'rigverbs', role, family, mtu, what }, body);

        rigverbs('SEND', async () => {
          const sends = SIZES.map((size) => `send:${size}`).join(' ');
          const { responder } = await run({
            options: '-r 300001 -n 16',
            requester: { operations: `fill:3 sync ${sends} sync` },
            responder: { operations: `sync recv:${SIZES.length} sync` },
          });
          expect(receivedOf(responder)).toEqual(SIZES.map((size) => `${size} ${fillSum(size, 3)}`));
        });

        rigverbs('SEND and WRITE with immediate', async () => {
          const { responder } = await run({
            requester: {
              operations:
                'fill:3 sync sendimm:0:0 sendimm:5:0xcafe sendimm:10000:0xffffffff writeimm:0:1 writeimm:9999:0x80000000 sync',
            },
            responder: { operations: 'fill:9 sync recv:5 sum:9999 sync' },
          });
          expect(responder.receives.map(({ imm }) => imm)).toEqual([
            '00000000',
            '0000cafe',
            'ffffffff',
            '00000001',
            '80000000',
          ]);
          expect(responder.receives.map(({ op }) => op)).toEqual([
            ...[OPCODE_RECV, OPCODE_RECV, OPCODE_RECV],
            ...[OPCODE_RECV_RDMA_WITH_IMM, OPCODE_RECV_RDMA_WITH_IMM],
          ]);
          expect(responder.receives.map(({ len }) => Number(len))).toEqual([0, 5, 10_000, 0, 9999]);
          expect(responder.sums).toEqual([fillSum(9999, 3)]);
        });

        rigverbs('WRITE and READ', async () => {
          const last = SIZES.at(-1) as number;
          const writes = SIZES.map((size) => `write:${size}`).join(' ');
          const reads = SIZES.map((size) => `fill:1 read:${size} sum:${size}`).join(' ');
          const { requester, responder } = await run({
            requester: { operations: `fill:3 sync ${writes} sync sync ${reads} read:1000:7 sum:1000 sync` },
            responder: { operations: `sync sync sum:${last} fill:9 sync sync` },
          });
          expect(responder.sums).toEqual([fillSum(last, 3)]);
          // Byte i + 7 of the responder's buffer is what it would be with another seed.
          expect(requester.sums).toEqual([...SIZES.map((size) => fillSum(size, 9)), fillSum(1000, 9 + 7 * 7)]);
        });

        rigverbs('fetch and add, compare and swap', async () => {
          const { requester, responder } = await run({
            requester: {
              operations:
                'sync faa:5 dump:8 faa:0xffffffffffffffff:8 dump:8 cas:5:0x0102030405060708 dump:8 cas:5:6 dump:8 cas:0:9:16 dump:8 sync',
            },
            responder: { operations: 'dump:24 sync sync dump:24' },
          });
          expect(requester.dumps).toEqual([
            hostOrder(0n),
            hostOrder(0n),
            hostOrder(5n),
            hostOrder(SWAPPED),
            hostOrder(0n),
          ]);
          expect(responder.dumps).toEqual([hostOrder(0n, 0n, 0n), hostOrder(SWAPPED, 0xffff_ffff_ffff_ffffn, 9n)]);
        });

        rigverbs('SEND with invalidate', async () => {
          const { responder } = await run({
            requester: { operations: 'fill:3 learn write:5000 sendinv:70 sync' },
            responder: { operations: 'bind recv:1 sum:5000 sync' },
          });
          expect(responder.sums).toEqual([fillSum(5000, 3)]);
          expect(receivedOf(responder)).toEqual([`70 ${fillSum(70, 3)}`]);
          expect(responder.receives.map(({ inv }) => inv)).toEqual(responder.keys);
        });

        rigverbs('a pipeline of everything', async () => {
          const { requester, responder } = await run({
            options: '-D 4',
            requester: {
              operations:
                'sync +send:2000*10 +write:20000*10 +read:20000*10 +faa:1:65536*10 +sendimm:1:2*10 +read:4096*5 +send:0 drain sync',
            },
            responder: { operations: 'sync recv:21 sync dump:8' },
          });
          expect(requester.sends.map(({ id }) => Number(id))).toEqual(Array.from({ length: 56 }, (_, i) => i));
          expect(responder.receives).toHaveLength(21);
        });
      }
    }
  }
});

function receivedOf(outcome: VerbsOutcome): string[] {
  return outcome.receives.map(({ len, fnv }) => `${len} ${fnv}`);
}

/** Numbers as they stand in the memory of either machine, in hex. */
function hostOrder(...numbers: bigint[]): string {
  return Buffer.from(BigUint64Array.from(numbers).buffer).toString('hex');
}
