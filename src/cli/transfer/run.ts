/** The traffic of bandwidth tests, once connected, and what latency tests share with it. */

import { setTimeout as delay } from 'node:timers/promises';
import { RoceError } from '../../core/errors.js';
import { NS_PER_MS, NS_PER_S } from '../../core/units.js';
import { nowNs } from '../../driver/system-clock.js';
import { completionError, type WorkCompletion } from '../../verbs/completion-queue.js';
import type { SendWorkRequest } from '../../verbs/send-work-request.js';
import type { CliIo, Progress } from '../output.js';
import { fillPattern } from '../pattern.js';
import { type Endpoint, grhBytes, type Lane, receiveDepth, type TransferOp } from './endpoint.js';
import { LatencySamples } from './result.js';

/** What bandwidth traffic needs of an endpoint, whichever exchange connected it. */
export type TrafficEndpoint = Pick<
  Endpoint,
  'device' | 'plan' | 'lanes' | 'region' | 'sendCq' | 'recvCq' | 'arrivals'
> & {
  readonly channel: { readonly isOpen: boolean };
};

/** What a client measured. */
export interface Tally {
  /** Operations completed on each lane; round trips of a latency test. */
  readonly counts: readonly number[];
  /** Messages that did not arrive, or that nothing answered. Null: only the receiver knows. */
  readonly lost: number | null;
  /** From the first message to the last completion. */
  readonly seconds: number;
  /** Samples of single operations. */
  readonly latency: LatencySamples;
}

/** Throws with what failed and, if it is so, that the peer is gone. */
export function check(wc: WorkCompletion, endpoint: TrafficEndpoint): void {
  if (wc.status === 0) return;
  throw completionError(wc, !endpoint.channel.isOpen);
}

/** The work request of one operation on a lane: all of the lane's buffer, at the same place of the peer's. */
export function operation(op: TransferOp, endpoint: TrafficEndpoint, lane: Lane): SendWorkRequest {
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
      return { opcode: 'SEND', sges, ...lane.agreement.destination };
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
  readonly #postedNs: Float64Array;
  posted = 0;
  completed = 0;

  constructor(lane: Lane, request: SendWorkRequest, depth: number) {
    this.lane = lane;
    this.#request = request;
    this.#postedNs = new Float64Array(depth);
  }

  get isFull(): boolean {
    return this.posted - this.completed >= this.#postedNs.length;
  }

  post(): void {
    this.#postedNs[this.posted % this.#postedNs.length] = nowNs();
    this.lane.qp.postSend({ ...this.#request, wrId: this.posted });
    this.posted++;
  }

  /** The oldest operation is done; its latency. Completions come in order. */
  complete(timeNs: number): number {
    return timeNs - this.#postedNs[this.completed++ % this.#postedNs.length];
  }
}

/** Client of a bandwidth test: keeps `depth` operations in flight on every lane until the plan is done or Ctrl-C. */
export async function pump(endpoint: TrafficEndpoint, io: CliIo, depth: number, progress: Progress): Promise<Tally> {
  const { plan, lanes, sendCq } = endpoint;
  const latency = new LatencySamples();
  const streams = new Map(
    lanes.map((lane) => [lane.qp.qpn, new Stream(lane, operation(plan.op, endpoint, lane), depth)]),
  );
  const startNs = nowNs();
  const { durationNs } = plan;
  let polledNs = startNs;
  const wantsMore = (stream: Stream) =>
    !io.interrupted.aborted && (durationNs > 0 ? polledNs - startNs < durationNs : stream.posted < plan.iterations);

  for (;;) {
    let inFlight = 0;
    let done = 0;
    for (const stream of streams.values()) {
      while (!stream.isFull && wantsMore(stream)) stream.post();
      inFlight += stream.posted - stream.completed;
      done += stream.completed;
    }
    if (inFlight === 0) break;
    const share = durationNs > 0 ? (polledNs - startNs) / durationNs : done / (plan.iterations * plan.qps);
    progress.update(Math.round(share * 100), `${done} messages`);
    await sendCq.wait();
    polledNs = nowNs();
    for (const wc of sendCq.poll(sendCq.depth)) {
      check(wc, endpoint);
      latency.add(streams.get(wc.qpn)!.complete(polledNs));
    }
  }
  const counts = [...streams.values()].map((stream) => stream.completed);
  const lost = plan.transport === 'rc' ? 0 : null;
  return { counts, lost, seconds: (nowNs() - startNs) / NS_PER_S, latency };
}

/** Posts a receive into the lane's area; wr_id is the lane's place. */
export function postReceive(endpoint: TrafficEndpoint, lane: number): void {
  const { lanes, region, plan } = endpoint;
  const grh = grhBytes(plan);
  const data = region.sge(lanes[lane].offset, plan.sizeBytes);
  lanes[lane].qp.postRecv({ wrId: lane, sges: grh === 0 ? [data] : [region.sge(region.length - grh, grh), data] });
}

/** Throws ERR_ROCE_MISMATCH for a message of another length than the plan's: perftest's `-a`, or another `-s`. */
export function checkLength(wc: WorkCompletion, { plan }: TrafficEndpoint): void {
  const bytes = wc.byteLen - grhBytes(plan);
  if (bytes === plan.sizeBytes) return;
  throw new RoceError(
    'ERR_ROCE_MISMATCH',
    `a message of ${bytes} bytes has arrived, and ${plan.sizeBytes} were expected`,
    'give both sides the same -s; perftest must run without -a',
  );
}

/** Fills the receive queues: before the client may send. */
export function postReceives(endpoint: TrafficEndpoint): void {
  if (endpoint.plan.op !== 'send') return;
  const depth = receiveDepth(endpoint.plan);
  endpoint.lanes.forEach((_, lane) => {
    for (let i = 0; i < depth; i++) postReceive(endpoint, lane);
  });
}

/** Server of a SEND bandwidth test: keeps the receive queues full until it has `messages`, or the endpoint is closed. */
export async function drainReceives(endpoint: TrafficEndpoint, messages = Number.POSITIVE_INFINITY): Promise<void> {
  const { arrivals } = endpoint;
  for await (const wc of endpoint.recvCq) {
    check(wc, endpoint);
    checkLength(wc, endpoint);
    postReceive(endpoint, Number(wc.wrId));
    if (++arrivals.messages === messages) return;
  }
}

/** Nothing has come for so long: what was sent and is not here is lost. */
const QUIET_NS = 300 * NS_PER_MS;
const QUIET_CHECK_MS = 20;

/** Server without acknowledgements: waits until all of `sent` messages are here, or no more come; how many are here. */
export async function settledArrivals(endpoint: TrafficEndpoint, sent: number): Promise<number> {
  let last = -1;
  for (let sinceNs = nowNs(); nowNs() - sinceNs < QUIET_NS; ) {
    const now = arrivedMessages(endpoint);
    if (now >= sent) return now;
    if (now !== last) sinceNs = nowNs();
    last = now;
    await delay(QUIET_CHECK_MS);
  }
  return last;
}

/** Messages that this side has taken whole: receives completed, or WRITEs that its NIC has executed. */
export function arrivedMessages({ plan, arrivals, device }: TrafficEndpoint): number {
  return plan.op === 'send' ? arrivals.messages : device.counters().rx_write_requests;
}

/** What has to be there before either side may start. */
export function prepare(endpoint: Endpoint, role: 'client' | 'server'): void {
  prepareData(endpoint, role);
  if (role === 'server') postReceives(endpoint);
}
