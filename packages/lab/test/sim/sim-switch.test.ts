import { expect, it } from 'vitest';
import { PfcFrame, parsePfc, pauseNs } from '../../../../src/packet/pfc.js';
import { Cable } from '../../src/sim/cable.js';
import { EventQueue } from '../../src/sim/event-queue.js';
import { SimSwitch } from '../../src/sim/sim-switch.js';
import { FramePool } from '../../src/switch/frame-pool.js';
import { Switch } from '../../src/switch/switch.js';
import { A, B, MACS, plainFrame, roceFrame } from '../switch/traffic.js';

it('lets a paused sender go on as soon as the buffer has drained, although nothing else happens', () => {
  const events = new EventQueue();
  const rateBps = 10e9;
  const pool = new FramePool(2000);
  const engine = new Switch({
    pool,
    ports: ['a', 'b'],
    pfc: { priorities: [0] },
    buffer: { totalBytes: 100_000, reservedBytes: 0, xonOffsetBytes: 0 },
    portDefaults: { rateBps, headroomBytes: 20_000 },
  });
  const cables = ['a', 'b'].map(() => new Cable({ events, rateBps, delayNs: 0, pool }));
  const node = new SimSwitch(engine, ['a', 'b'], events, cables);
  const pauses: Array<readonly [quanta: number, timeNs: number]> = [];
  cables[A].connect((bytes, offset, length) => {
    const pfc = new PfcFrame();
    if (parsePfc(bytes, offset, length, pfc)) pauses.push([pfc.quanta[0], events.nowNs]);
  });
  node.sinkOf(B)(pool.store(plainFrame(MACS[A], MACS[B]), 0, 60));
  for (let psn = 0; psn < 12; psn++) {
    const frame = roceFrame(A, B, { psn, frameBytes: 1002 });
    node.sinkOf(A)(pool.store(frame, 0, frame.length));
  }
  events.run({ untilNs: 1e6 });
  expect(pauses.map(([quanta]) => quanta)).toEqual([65535, 0]);
  const drainedNs = (12 * 1026 * 8) / 10;
  expect(pauses[1][1]).toBeLessThan(drainedNs + 100);
  expect(drainedNs).toBeLessThan(pauseNs(65535, rateBps) / 2); // not by way of a repeated pause
});
