/** A rate control that limits the bytes in flight, and a recovery scheme with parameters: what the queue pair makes of both. */

import { describe, expect, it } from 'vitest';
import { type Acknowledgement, RateControl } from '../../src/dcqcn/rate-control.js';
import { type RateControlOptions, rateControlNames, registerRateControl } from '../../src/dcqcn/rate-controls.js';
import { LoneNic, MTU } from '../support/lone-nic.js';

/** What the control of the last queue pair was told. */
let told: Acknowledgement[] = [];
let windowBytes = 0;
const NO_ECHO = { receivedPackets: 0, markedPackets: 0, echo: undefined };

class TestWindow extends RateControl {
  override readonly usesWindow = true;
  override readonly usesEcn = true; // Or no notification could be meant for it.
  override readonly rttSampleBytes = 1;

  constructor() {
    super();
    told = [];
  }

  override windowBytes(): number {
    return windowBytes;
  }

  override onAck(ack: Readonly<Acknowledgement>): void {
    told.push({ ...ack });
  }
}

registerRateControl({
  name: 'test-window',
  summary: 'a window that tests set',
  parameters: {},
  isPaced: false,
  create: () => new TestWindow(),
});

async function nicWithWindow(bytes: number): Promise<LoneNic> {
  windowBytes = bytes;
  const nic = await LoneNic.create({ attr: { rateControl: { name: 'test-window' } as unknown as RateControlOptions } });
  nic.qp.postSend({ opcode: 'SEND', sges: [nic.mr.sge(0, 12 * MTU)] });
  return nic;
}

describe('a queue pair under a rate control with a window', () => {
  it('has no more in flight than the window, and asks for an acknowledgement of every packet', async () => {
    const nic = await nicWithWindow(4 * MTU + 1);
    const sent = nic.advance(50_000);
    expect(sent.map(({ at, ackReq }) => [at, ackReq])).toEqual([0, 1, 2, 3].map((at) => [at, true]));
    nic.ack(1);
    expect(nic.advance(1000).map(({ at }) => at)).toEqual([4, 5]);
  });

  it('obeys a window that shrinks, and one that opens again', async () => {
    const nic = await nicWithWindow(4 * MTU);
    nic.advance(50_000);
    windowBytes = MTU;
    nic.ack(1);
    expect(nic.advance(1000)).toEqual([]);
    windowBytes = 3 * MTU;
    nic.ack(2);
    expect(nic.advance(1000).map(({ at }) => at)).toEqual([4, 5]);
  });

  it('may always have one packet in flight', async () => {
    const nic = await nicWithWindow(1);
    expect(nic.advance(50_000).map(({ at }) => at)).toEqual([0]);
  });

  it('tells it of each acknowledgement: bytes, the round trip, and notifications since the last one', async () => {
    const nic = await nicWithWindow(8 * MTU);
    nic.advance(50_000);
    nic.congestionNotification();
    nic.ack(2);
    nic.ack(3);
    expect(told).toEqual([
      { bytes: 3 * MTU, rttNs: expect.any(Number), marks: 1, ...NO_ECHO },
      { bytes: MTU, rttNs: expect.any(Number), marks: 0, ...NO_ECHO },
    ]);
    expect(told[0].rttNs).toBeGreaterThan(40_000);
  });

  it('tells it no round trip of packets that were sent twice', async () => {
    const nic = await nicWithWindow(4 * MTU);
    nic.advance(50_000);
    nic.ack(0, 0x60); // NAK: everything again.
    nic.advance(1000);
    nic.ack(1);
    expect(told).toEqual([{ bytes: 2 * MTU, rttNs: Number.NaN, marks: 0, ...NO_ECHO }]);
  });

  it('says its window', async () => {
    const nic = await nicWithWindow(4 * MTU);
    expect((await nic.qp.query()).windowBytes).toBe(4 * MTU);
    expect(rateControlNames()).toContain('test-window');
  });
});
