/** TCP as a model beside RDMA: the sender's rules one by one, and runs over the simulated switch. */

import { describe, expect, it } from 'vitest';
import { IpAddress } from '../../../../src/packet/address.js';
import { FRAME_NOT_UDP, FrameInfo, parseFrame } from '../../../../src/packet/frame.js';
import { parseScenario } from '../../src/sim/scenario/schema.js';
import { TcpReceiver } from '../../src/sim/tcp/receiver.js';
import { runTcp } from '../../src/sim/tcp/run-tcp.js';
import { readSegment, SEGMENT_HEADER_BYTES, writeSegment } from '../../src/sim/tcp/segment.js';
import { TcpSender } from '../../src/sim/tcp/sender.js';

const SEGMENT = 1000;
const RTO = 10e6;

/** A sender whose segments are listed by their first bytes, and whose timer is looked at. */
function newSender(segments: number) {
  const sent: number[] = [];
  const timer = { wakeNs: Number.NaN };
  const sender = new TcpSender({
    bytes: segments * SEGMENT,
    segmentBytes: SEGMENT,
    minimumRtoNs: RTO,
    send: (sequence) => sent.push(sequence / SEGMENT),
    wakeAt: (timeNs) => {
      timer.wakeNs = timeNs;
    },
  });
  const acknowledge = (segment: number, nowNs = 1000) => sender.onAcknowledgement(segment * SEGMENT, nowNs);
  return { sender, sent, timer, acknowledge };
}

describe('the sender', () => {
  it('begins with ten segments, and doubles its window in each round trip', () => {
    const { sender, sent, acknowledge } = newSender(1000);
    sender.start(0);
    expect(sent.length).toBe(10);
    for (let segment = 1; segment <= 10; segment++) acknowledge(segment);
    expect(sent.length).toBe(30);
    for (let segment = 11; segment <= 30; segment++) acknowledge(segment);
    expect(sender.windowBytes).toBe(40 * SEGMENT);
  });

  it('sends again at the third duplicate and not at the second, with half of the window', () => {
    const { sender, sent, acknowledge } = newSender(20);
    sender.start(0);
    acknowledge(0);
    acknowledge(0);
    expect(sent.length).toBe(10);
    acknowledge(0);
    expect(sent[10]).toBe(0);
    acknowledge(10);
    expect([sender.windowBytes, sender.retransmissions, sender.timeouts]).toEqual([5 * SEGMENT, 1, 0]);
  });

  it('sends the next hole at each partial acknowledgement, and halves once', () => {
    const { sender, sent, acknowledge } = newSender(10);
    sender.start(0);
    for (let i = 0; i < 3; i++) acknowledge(0);
    acknowledge(4);
    acknowledge(7);
    expect(sent.slice(10)).toEqual([0, 4, 7]);
    acknowledge(10);
    expect([sender.isDone, sender.retransmissions, sender.timeouts]).toEqual([true, 3, 0]);
  });

  it('grows by a segment in a round trip after it has halved', () => {
    const { sender, acknowledge } = newSender(1000);
    sender.start(0);
    for (let i = 0; i < 3; i++) acknowledge(0);
    acknowledge(10);
    for (let segment = 11; segment <= 15; segment++) acknowledge(segment);
    expect(sender.windowBytes).toBeGreaterThan(5.8 * SEGMENT);
    expect(sender.windowBytes).toBeLessThanOrEqual(6 * SEGMENT);
  });

  it('begins again with one segment at a timeout, and doubles the timeout up to the next sample', () => {
    const { sender, sent, timer, acknowledge } = newSender(40);
    sender.start(0);
    expect(timer.wakeNs).toBe(1e9); // No sample yet.
    acknowledge(1, 50_000);
    expect(timer.wakeNs).toBe(50_000 + RTO); // 3 round trips are less than the bound.
    const before = sent.length;
    sender.onTimer(timer.wakeNs);
    expect(sent.slice(before)).toEqual([1]);
    expect(timer.wakeNs).toBe(50_000 + 3 * RTO);
    sender.onTimer(timer.wakeNs);
    expect(timer.wakeNs).toBe(50_000 + 7 * RTO);
    expect([sender.windowBytes, sender.timeouts]).toEqual([SEGMENT, 2]);
  });
});

it('the receiver waits for what is missing, and keeps what is behind it', () => {
  const receiver = new TcpReceiver();
  receiver.onSegment(1000, 1000);
  receiver.onSegment(3000, 500);
  expect(receiver.expected).toBe(0);
  receiver.onSegment(0, 1000);
  expect(receiver.expected).toBe(2000);
  receiver.onSegment(0, 1000);
  receiver.onSegment(2000, 1000);
  expect(receiver.expected).toBe(3500);
});

it('segments are TCP in IPv4 with a good checksum', () => {
  const end = (host: number) => ({
    address: IpAddress.parse(`10.0.0.${host}`),
    mac: Uint8Array.of(2, 0, 10, 0, 0, host),
  });
  const segment = { connection: 40_000, sequence: 70_000, acknowledged: 3, bytes: 100 };
  const frame = new Uint8Array(SEGMENT_HEADER_BYTES + 100);
  expect(writeSegment(frame, end(1), end(2), segment)).toBe(frame.length);
  const info = new FrameInfo();
  expect([parseFrame(frame, 0, frame.length, info), info.protocol]).toEqual([FRAME_NOT_UDP, 6]);
  const read = { connection: 0, sequence: 0, acknowledged: 0, bytes: 0 };
  readSegment(frame, 0, frame.length, read);
  expect(read).toEqual(segment);
});

describe('a run', () => {
  const incast = (lossyAlpha: number) =>
    parseScenario({
      name: 'incast',
      duration: '1s',
      topology: { kind: 'star', hosts: 17, rate: '40Gbps', delay: '1us' },
      switch: { pfc: { priorities: [0] }, buffer: { totalBytes: 1_000_000, lossyAlpha } },
      flows: [{ kind: 'flows', from: 'h0..h15', to: 'h16', bytes: 32_768 }],
    });
  const slowest = ({ flows }: ReturnType<typeof runTcp>) => Math.max(...flows.map(({ completionNs }) => completionNs!));

  it('takes as long as its frames and its round trip, while the window holds all', () => {
    const scenario = parseScenario({
      name: 'pair',
      duration: '1s',
      topology: { kind: 'pair', rate: '40Gbps', delay: '1us' },
      flows: [{ kind: 'flows', from: 'h0', to: 'h1', bytes: 8 * 1024 }],
    });
    const [wire, ack] = [(1024 + SEGMENT_HEADER_BYTES + 24) / 5, (SEGMENT_HEADER_BYTES + 24) / 5];
    expect(runTcp(scenario).flows[0].completionNs).toBeCloseTo(8 * wire + wire + 2 * ack + 4000, 3);
  });

  it('ends over a queue that loses, with a segment sent again for each that was lost, or more', () => {
    const result = runTcp(incast(1 / 16));
    const again = result.flows.reduce((sum, { retransmissions }) => sum + retransmissions, 0);
    expect(result.droppedPackets).toBeGreaterThan(50);
    expect(again).toBeGreaterThanOrEqual(result.droppedPackets);
    expect(slowest(result)).toBeGreaterThan(RTO); // A loss at the end of a message waits for the timer.
    expect(slowest(runTcp(incast(1 / 16), 1e6))).toBeLessThan(RTO);
  });

  it('loses nothing where the queue holds all, and ends as soon as the port has sent it', () => {
    const result = runTcp(incast(8));
    expect([result.droppedPackets, result.flows.reduce((sum, { timeouts }) => sum + timeouts, 0)]).toEqual([0, 0]);
    const portNs = (16 * 32 * (1024 + SEGMENT_HEADER_BYTES + 24)) / 5;
    expect(slowest(result)).toBeGreaterThan(portNs);
    expect(slowest(result)).toBeLessThan(1.05 * portNs);
  });

  it('refuses flows that never end', () => {
    const endless = parseScenario({
      name: 'x',
      duration: '1ms',
      topology: { kind: 'pair' },
      flows: [{ kind: 'flows', from: 'h0', to: 'h1' }],
    });
    expect(() => runTcp(endless)).toThrow(/flows that end/);
  });
});
