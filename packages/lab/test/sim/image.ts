/**
 * What both hosts' regions must hold when a plan is done, computed from the plan alone: plain copies in posting order. Bytes that no
 * operation names, the guards, keep their first value. Only the results of FETCH_ADD depend on who came first; they are judged as a chain.
 */

import { SeededRandom } from '../../../../src/core/random.js';
import { fillRandom } from '../../../../test/support/dice.js';
import type { Range } from './arena.js';
import type { FlowPlan, Operation, Plan, Side } from './plan.js';

export type Image = Record<Side, Buffer>;

/** The regions before anything has happened. */
export function initialImage(plan: Plan): Image {
  const random = new SeededRandom(plan.seed);
  const side = (name: Side) => {
    const bytes = Buffer.alloc(plan.memoryBytes[name]);
    fillRandom(bytes, random.stream(`memory ${name}`));
    return bytes;
  };
  const image = { a: side('a'), b: side('b') };
  for (const flow of plan.flows) image[flow.to].writeBigUInt64LE(0n, flow.swapWord.offset);
  return image;
}

/** Applies everything but FETCH_ADD. */
export function finalImage(plan: Plan): Image {
  const image = initialImage(plan);
  for (const flow of plan.flows) {
    const receives = flow.receives[Symbol.iterator]();
    for (const operation of flow.operations) apply(image, flow, operation, receives);
  }
  return image;
}

function apply(image: Image, flow: FlowPlan, operation: Operation, receives: Iterator<readonly Range[]>): void {
  const here = image[flow.from];
  const there = image[flow.to];
  switch (operation.kind) {
    case 'RDMA_READ':
      scatter(here, operation.local, gather(there, [operation.remote!]));
      return;
    case 'RDMA_WRITE':
    case 'ATOMIC_WRITE':
      scatter(there, [operation.remote!], payload(here, operation));
      return;
    case 'RDMA_WRITE_WITH_IMM':
      receives.next();
      scatter(there, [operation.remote!], payload(here, operation));
      return;
    case 'ATOMIC_FETCH_AND_ADD':
    case 'FLUSH':
      return;
    case 'ATOMIC_CMP_AND_SWP': {
      const { offset } = operation.remote!;
      const original = there.readBigUInt64LE(offset);
      if (original === operation.compare) there.writeBigUInt64LE(operation.swap, offset);
      here.writeBigUInt64LE(original, operation.local[0].offset);
      return;
    }
    default:
      scatter(there, receives.next().value, payload(here, operation));
  }
}

function payload(memory: Buffer, operation: Operation): Uint8Array {
  return operation.inline ?? gather(memory, operation.local);
}

function gather(memory: Buffer, ranges: readonly Range[]): Buffer {
  return Buffer.concat(ranges.map(({ offset, length }) => memory.subarray(offset, offset + length)));
}

function scatter(memory: Buffer, ranges: readonly Range[], bytes: Uint8Array): void {
  let done = 0;
  for (const { offset, length } of ranges) {
    const part = bytes.subarray(done, done + length);
    memory.set(part, offset);
    done += part.length;
  }
}

/**
 * Takes the results of all FETCH_ADDs on one word as they were found and checks that they are those of some order in which each
 * happened once: they form one chain from the first value to the last. Copies them into the image. Returns what is wrong.
 */
export function settleFetchAdds(plan: Plan, expected: Image, actual: Image): string[] {
  const wrong: string[] = [];
  for (const side of ['a', 'b'] as const) {
    for (const word of plan.counterWords[side]) {
      const addByOriginal = new Map<bigint, bigint>();
      let count = 0;
      for (const flow of plan.flows) {
        for (const { kind, remote, local, add } of flow.operations) {
          if (kind !== 'ATOMIC_FETCH_AND_ADD' || flow.to !== side || remote !== word) continue;
          const original = actual[flow.from].readBigUInt64LE(local[0].offset);
          expected[flow.from].writeBigUInt64LE(original, local[0].offset);
          addByOriginal.set(original, add);
          count++;
        }
      }
      let value = expected[side].readBigUInt64LE(word.offset);
      let links = 0;
      for (let add = addByOriginal.get(value); add !== undefined && links < count; add = addByOriginal.get(value)) {
        value = BigInt.asUintN(64, value + add);
        links++;
      }
      if (links !== count)
        wrong.push(`${count} FETCH_ADDs on word ${word.offset} of ${side}: only ${links} form a chain`);
      expected[side].writeBigUInt64LE(value, word.offset);
    }
  }
  return wrong;
}
