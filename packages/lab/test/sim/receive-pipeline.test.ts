import { expect, test } from 'vitest';
import { EventQueue } from '../../src/sim/event-queue.js';
import { ReceivePipeline, type ReceivePipelineOptions } from '../../src/sim/receive-pipeline.js';
import { FramePool } from '../../src/switch/frame-pool.js';

const PAUSE_NS = 1e6;
const FRAME = 100;

/** A pipeline that takes 10 ns for a packet whose context it has, 100 ns for any other. */
function bench(change: Partial<ReceivePipelineOptions> = {}) {
  const events = new EventQueue();
  const pool = new FramePool(FRAME);
  const taken: Array<[timeNs: number, first: number]> = [];
  const pauses: Array<[timeNs: number, isOn: boolean]> = [];
  const pipeline = new ReceivePipeline(
    { contexts: 2, hitNs: 10, missNs: 100, bufferBytes: 1e6, priority: 3, ...change },
    {
      events,
      pool,
      take: (slot) => {
        taken.push([events.nowNs, pool.bytes(slot)[0]]);
        pool.release(slot);
      },
      pause: (priority, isOn) => {
        expect(priority).toBe(3);
        pauses.push([events.nowNs, isOn]);
        return PAUSE_NS;
      },
    },
  );
  const add = (...queuePairs: number[]) => {
    for (const qpn of queuePairs) pipeline.add(qpn, pool.store(new Uint8Array(FRAME).fill(qpn), 0, FRAME));
  };
  return { events, pipeline, taken, pauses, add };
}

test('packets of a cached queue pair are fast, the one used longest ago makes room', () => {
  const { events, taken, add } = bench();
  add(1, 1, 2, 1, 3, 1, 2);
  events.run();
  expect(taken).toEqual([
    [100, 1],
    [110, 1],
    [210, 2],
    [220, 1],
    [320, 3], // in the place of 2
    [330, 1],
    [430, 2],
  ]);
});

test('packets of more queue pairs than it holds, in turn, all miss; in bursts, few do', () => {
  const run = (queuePairs: readonly number[]): number => {
    const { events, add } = bench();
    add(...queuePairs);
    events.run();
    return events.nowNs;
  };
  expect(run([1, 2, 3, 1, 2, 3, 1, 2, 3])).toBe(900);
  expect(run([1, 1, 1, 2, 2, 2, 3, 3, 3])).toBe(360);
});

test('it asks for a pause at half of its buffer, repeats it, and lets go below a quarter', () => {
  const { events, pipeline, pauses, add } = bench({ contexts: 1, missNs: 3e5, bufferBytes: 8 * FRAME });
  add(1, 2, 3, 4);
  expect(pauses).toEqual([]);
  add(5);
  events.run();
  expect(pauses).toEqual([
    [0, true],
    [6e5, true], // half of the pause is over
    [12e5, false],
  ]);
  expect(pipeline.lostPackets).toBe(0);
});

test('what finds no room is lost and counted, the rest is taken in', () => {
  const { events, pipeline, taken, add } = bench({ bufferBytes: 3 * FRAME });
  add(1, 1, 1, 1, 1);
  events.run();
  expect(taken).toHaveLength(3);
  expect(pipeline.lostPackets).toBe(2);
});
