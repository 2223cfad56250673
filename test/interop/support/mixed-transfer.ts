/** A transfer of everything RC can do, whose data is checked at both ends: what tests of loss and faults have in common. */

import { expect } from 'vitest';
import type { Rig } from './rig.js';
import { fillSum, runVerbs, type VerbsPlan, type VerbsResult } from './verbs-pair.js';

export type MixedPlan = Pick<VerbsPlan, 'role' | 'family' | 'options' | 'faults'>;

const OWN_SEED = 3;
const PEER_SEED = 9;
const ADDITIONS = 20;

/** WRITE, SEND, SEND with immediate, READ and fetch-and-add, `bytes` long. Fails when a side fails or holds anything wrong. */
export async function mixedTransfer(rig: Rig, plan: MixedPlan, bytes: number): Promise<VerbsResult> {
  const outward = `fill:${OWN_SEED} sync +write:${bytes} +send:${bytes} +sendimm:3000:5 drain sync sync`;
  const inward = `fill:0 read:${bytes} sum:${bytes} faa:1:${bytes}*${ADDITIONS} read:8:${bytes} dump:8 sync`;
  const result = await runVerbs(rig, {
    ...plan,
    options: `-b ${bytes + 8} -r ${bytes} -n 4 -t 14 ${plan.options}`,
    requester: { operations: `${outward} ${inward}` },
    responder: { operations: `sync recv:2 sync sum:${bytes} fill:${PEER_SEED} sync sync` },
  });
  const { requester, responder, ours, theirs } = result;
  expect([theirs.exitCode, ours.exitCode], theirs.text + ours.text).toEqual([0, 0]);
  expect(responder.receives.map(({ fnv }) => fnv)).toEqual([fillSum(bytes, OWN_SEED), fillSum(3000, OWN_SEED)]);
  expect(responder.sums).toEqual([fillSum(bytes, OWN_SEED)]);
  expect(requester.sums).toEqual([fillSum(bytes, PEER_SEED)]);
  expect(requester.dumps).toEqual([filledThenAdded(bytes, PEER_SEED, BigInt(ADDITIONS))]);
  return result;
}

/** A little-endian number that began as filled bytes (`fill:SEED` at this offset), after an addition, in hex. */
function filledThenAdded(offset: number, seed: number, added: bigint): string {
  const bytes = Buffer.from(Array.from({ length: 8 }, (_, i) => (7 * (offset + i) + seed) & 0xff));
  bytes.writeBigUInt64LE(BigInt.asUintN(64, bytes.readBigUInt64LE() + added));
  return bytes.toString('hex');
}
