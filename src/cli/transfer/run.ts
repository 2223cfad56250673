/** The traffic of bandwidth and latency tests, once connected. */

import { performance } from 'node:perf_hooks';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { RoceError } from '../../core/errors.js';
import { type CompletionQueue, completionError, type WorkCompletion } from '../../verbs/completion-queue.js';
import type { SendWorkRequest } from '../../verbs/send-work-request.js';
import type { CliIo, Progress } from '../output.js';
import { fillPattern } from '../pattern.js';
import { areaBytes, type Endpoint, type Lane, RECEIVE_DEPTH, type TransferOp } from './endpoint.js';
import { LatencySamples } from './result.js';

const NS_PER_MS = 1e6;

/** What bandwidth traffic needs of an endpoint, whichever exchange connected it. */
export type TrafficEndpoint = Pick<Endpoint, 'device' | 'plan' | 'lanes' | 'region' | 'sendCq' | 'recvCq'> & {
  readonly channel: { readonly isOpen: boolean };
};

/** What a client measured. */
export interface Tally {
  /** Operations completed on each lane. */
  readonly counts: readonly number[];
  /** From the first message to the last completion. */
  readonly seconds: number;
  /** Samples of single operations. */
  readonly latency: LatencySamples;
}

/** Throws with what failed and, if it is so, that the peer is gone. */
function check(wc: WorkCompletion, endpoint: TrafficEndpoint): void {
  if (wc.status === 0) return;
  throw completionError(wc, !endpoint.channel.isOpen);
}

function operation(op: TransferOp, endpoint: TrafficEndpoint, lane: Lane): SendWorkRequest {
  const { region, plan } = endpoint;
  const remote = lane.agreement.region!;
  const target = { remoteAddr: remote.addr, rkey: remote.rkey };
  const sges = [region.sge(lane.offset, plan.sizeBytes)];
  switch (op) {
    case 'write':
      return { opcode: 'RDMA_WRITE', sges, ...target };
    case 'read':
      return { opcode: 'RDMA_READ', sges, ...target };
    case 'send':
      return { opcode: 'SEND', sges };
    default:
      return { opcode: 'ATOMIC_FETCH_AND_ADD', add: 1n, sges, ...target };
  }
}

/** The side that holds the original fills it: the client for WRITE and SEND, the server for READ. */
function prepareData(endpoint: Endpoint, role: 'client' | 'server'): void {
  const { plan, region, lanes } = endpoint;
  if (plan.op === 'atomic' || (plan.op === 'read') !== (role === 'server')) return;
  lanes.forEach((lane, i) => {
    fillPattern(region.bytes.subarray(lane.offset, lane.offset + plan.sizeBytes), i);
  });
}

/** One lane of the client: how far it is, and when each operation in flight was posted. */
class Stream {
  readonly lane: Lane;
  readonly #request: SendWorkRequest;
  readonly #startMs: Float64Array;
  posted = 0;
  completed = 0;

  constructor(lane: Lane, request: SendWorkRequest, depth: number) {
    this.lane = lane;
    this.#request = request;
    this.#startMs = new Float64Array(depth);
  }

  get isFull(): boolean {
    return this.posted - this.completed >= this.#startMs.length;
  }

  post(): void {
    this.#startMs[this.posted % this.#startMs.length] = performance.now();
    this.lane.qp.postSend({ ...this.#request, wrId: this.posted });
    this.posted++;
  }

  /** The oldest operation is done; its latency. Completions come in order. */
  complete(nowMs: number): number {
    return (nowMs - this.#startMs[this.completed++ % this.#startMs.length]) * NS_PER_MS;
  }
}

/** Client of a bandwidth test: keeps `depth` operations in flight on every lane until the plan is done or Ctrl-C. */
export async function pump(endpoint: TrafficEndpoint, io: CliIo, depth: number, progress: Progress): Promise<Tally> {
  const { plan, lanes, sendCq } = endpoint;
  const latency = new LatencySamples();
  const streams = new Map(
    lanes.map((lane) => [lane.qp.qpn, new Stream(lane, operation(plan.op, endpoint, lane), depth)]),
  );
  const startMs = performance.now();
  const durationMs = plan.durationNs / NS_PER_MS;
  let nowMs = startMs;
  const wantsMore = (stream: Stream) =>
    !io.interrupted.aborted && (durationMs > 0 ? nowMs - startMs < durationMs : stream.posted < plan.iterations);

  for (;;) {
    let inFlight = 0;
    let done = 0;
    for (const stream of streams.values()) {
      while (!stream.isFull && wantsMore(stream)) stream.post();
      inFlight += stream.posted - stream.completed;
      done += stream.completed;
    }
    if (inFlight === 0) break;
    const share = durationMs > 0 ? (nowMs - startMs) / durationMs : done / (plan.iterations * plan.qps);
    progress.update(Math.round(share * 100), `${done} messages`);
    await sendCq.wait();
    nowMs = performance.now();
    for (const wc of sendCq.poll(sendCq.depth)) {
      check(wc, endpoint);
      latency.add(streams.get(wc.qpn)!.complete(nowMs));
    }
  }
  const counts = [...streams.values()].map((stream) => stream.completed);
  return { counts, seconds: (performance.now() - startMs) / 1000, latency };
}

/** Posts a receive into the lane's area; wr_id is the lane's place. */
function postReceive(endpoint: TrafficEndpoint, lane: number): void {
  const { lanes, region, plan } = endpoint;
  lanes[lane].qp.postRecv({ wrId: lane, sges: [region.sge(lanes[lane].offset, plan.sizeBytes)] });
}

/** Fills the receive queues: before the client may send. */
export function postReceives(endpoint: TrafficEndpoint): void {
  if (endpoint.plan.op !== 'send') return;
  endpoint.lanes.forEach((_, lane) => {
    for (let i = 0; i < RECEIVE_DEPTH; i++) postReceive(endpoint, lane);
  });
}

/** Server of a SEND bandwidth test: keeps the receive queues full until it has `messages`, or the endpoint is closed. */
export async function drainReceives(endpoint: TrafficEndpoint, messages = Number.POSITIVE_INFINITY): Promise<void> {
  let received = 0;
  for await (const wc of endpoint.recvCq) {
    check(wc, endpoint);
    postReceive(endpoint, Number(wc.wrId));
    if (++received === messages) return;
  }
}

/** What has to be there before either side may start. */
export function prepare(endpoint: Endpoint, role: 'client' | 'server'): void {
  prepareData(endpoint, role);
  if (role === 'server') postReceives(endpoint);
}

/** How a latency test waits: asks in every turn of the event loop, as perftest spins, or sleeps until there is an event. */
export type Waiting = 'poll' | 'events';

async function nextCompletion(cq: CompletionQueue, waiting: Waiting, endpoint: TrafficEndpoint): Promise<void> {
  for (;;) {
    const wc = cq.pollOne();
    if (wc !== undefined) {
      check(wc, endpoint);
      return;
    }
    if (waiting === 'events') await cq.wait();
    else await nextTurn();
    if (!endpoint.channel.isOpen) throw new RoceError('ERR_ROCE_CONNECT', 'the peer process is gone');
  }
}

/** One side of a WRITE ping-pong: data area is written by the peer, the second area is where ours leave from. */
class WritePingPong {
  readonly #endpoint: TrafficEndpoint;
  readonly #sourceOffset: number;

  constructor(endpoint: TrafficEndpoint) {
    this.#endpoint = endpoint;
    this.#sourceOffset = endpoint.lanes[0].offset + areaBytes(endpoint.plan);
  }

  /** Writes message `round` into the peer's memory; its last byte is the mark the peer waits for. */
  post(round: number): void {
    const { region, plan, lanes } = this.#endpoint;
    const [{ qp, agreement }] = lanes;
    region.bytes[this.#sourceOffset + plan.sizeBytes - 1] = round;
    const sges = [region.sge(this.#sourceOffset, plan.sizeBytes)];
    const { addr, rkey } = agreement.region!;
    qp.postSend({ opcode: 'RDMA_WRITE', sges, remoteAddr: addr, rkey, wrId: round });
  }

  /** Waits until the peer's message `round` has landed. The peer's CPU told us nothing: we look at the memory. */
  async arrived(round: number): Promise<void> {
    const { region, plan, lanes, channel, sendCq } = this.#endpoint;
    const mark = lanes[0].offset + plan.sizeBytes - 1;
    while (region.bytes[mark] !== (round & 0xff)) {
      await nextTurn();
      if (!channel.isOpen) throw new RoceError('ERR_ROCE_CONNECT', 'the peer process is gone');
    }
    for (let wc = sendCq.pollOne(); wc !== undefined; wc = sendCq.pollOne()) check(wc, this.#endpoint);
  }
}

/** The rounds of a latency test: 1, 2, ... until the plan is done or Ctrl-C. `body` runs one and returns its latency in ms, if it has one. */
async function rounds(
  endpoint: TrafficEndpoint,
  io: CliIo,
  progress: Progress,
  body: (round: number) => Promise<number | undefined>,
): Promise<Tally> {
  const { plan } = endpoint;
  const latency = new LatencySamples();
  const startMs = performance.now();
  const durationMs = plan.durationNs / NS_PER_MS;
  let round = 0;
  while (!io.interrupted.aborted) {
    const elapsedMs = performance.now() - startMs;
    if (durationMs > 0 ? elapsedMs >= durationMs : round >= plan.iterations) break;
    const latencyMs = await body(++round);
    if (latencyMs !== undefined) latency.add(latencyMs * NS_PER_MS);
    const share = durationMs > 0 ? elapsedMs / durationMs : round / plan.iterations;
    if ((round & 0xff) === 0) progress.update(Math.round(share * 100), `${round} rounds`);
  }
  return { counts: [round], seconds: (performance.now() - startMs) / 1000, latency };
}

/** Client of a WRITE ping-pong that the server begins, as perftest's does: half the time from each of our messages to the peer's next. */
export function followWrites(endpoint: TrafficEndpoint, io: CliIo, progress: Progress): Promise<Tally> {
  const pingPong = new WritePingPong(endpoint);
  let postedMs: number | undefined;
  return rounds(endpoint, io, progress, async (round) => {
    await pingPong.arrived(round);
    const nowMs = performance.now();
    const latencyMs = postedMs === undefined ? undefined : (nowMs - postedMs) / 2;
    postedMs = nowMs;
    pingPong.post(round);
    return latencyMs;
  });
}

/** Client of a latency test. WRITE and SEND go to and fro, half of the round trip counts; READ and atomics count whole. */
export function measureLatency(
  endpoint: TrafficEndpoint,
  io: CliIo,
  waiting: Waiting,
  progress: Progress,
): Promise<Tally> {
  const { plan, lanes, sendCq, recvCq } = endpoint;
  const [lane] = lanes;
  const request = operation(plan.op, endpoint, lane);
  if (plan.op === 'write') {
    const pingPong = new WritePingPong(endpoint);
    return rounds(endpoint, io, progress, async (round) => {
      const startMs = performance.now();
      pingPong.post(round);
      await pingPong.arrived(round);
      return (performance.now() - startMs) / 2;
    });
  }
  return rounds(endpoint, io, progress, async () => {
    if (plan.op === 'send') postReceive(endpoint, 0);
    const startMs = performance.now();
    lane.qp.postSend(request);
    if (plan.op === 'send') {
      await nextCompletion(recvCq, waiting, endpoint);
      const halfMs = (performance.now() - startMs) / 2;
      await nextCompletion(sendCq, waiting, endpoint);
      return halfMs;
    }
    await nextCompletion(sendCq, waiting, endpoint);
    return performance.now() - startMs;
  });
}

/**
 * Server of a latency test: answers each message, until there were `rounds`, or the client is done and the endpoint closes. READ and atomics
 * need nobody.
 */
export async function answerLatency(
  endpoint: TrafficEndpoint,
  waiting: Waiting,
  rounds = Number.POSITIVE_INFINITY,
): Promise<void> {
  const { plan, lanes, sendCq, recvCq, region } = endpoint;
  const [{ qp, offset }] = lanes;
  try {
    if (plan.op === 'write') {
      const pingPong = new WritePingPong(endpoint);
      for (let round = 1; round <= rounds && !endpoint.device.isClosed; round++) {
        await pingPong.arrived(round);
        pingPong.post(round);
      }
    } else if (plan.op === 'send') {
      for (let round = 1; round <= rounds && !endpoint.device.isClosed; round++) {
        await nextCompletion(recvCq, waiting, endpoint);
        postReceive(endpoint, 0);
        for (let wc = sendCq.pollOne(); wc !== undefined; wc = sendCq.pollOne()) check(wc, endpoint);
        qp.postSend({ opcode: 'SEND', sges: [region.sge(offset, plan.sizeBytes)] });
      }
    }
  } catch (error) {
    // The client closes the control connection when it is done; that ends the waiting above.
    if (endpoint.channel.isOpen && !endpoint.device.isClosed) throw error;
  }
}
