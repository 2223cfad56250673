/**
 * The sending side of a bandwidth test: keeps work requests in flight on every flow until the plan is done or Ctrl-C.
 * Then it waits a moment for requests in flight; in a livelock that would never complete.
 */

import { LatencySamples, type Progress } from '@rocev2/command';
import { NS_PER_MS, NS_PER_S } from 'rocev2/internal/core';
import { nowNs, SYSTEM_CLOCK } from 'rocev2/internal/driver';
import type { CompletionQueue, SendWorkRequest } from 'rocev2/internal/verbs';
import type { TransferFlow } from './endpoint.js';
import { type Interval, IntervalLog } from './intervals.js';
import { PeakFinder } from './peak-finder.js';
import { check, operation, type RoundTally, type TrafficEndpoint } from './transfer-round.js';

/** Most messages complete within it, and -D stays what it says. */
const DRAIN_NS = 500 * NS_PER_MS;

export interface PumpOptions {
  /** Messages in flight on each flow. */
  readonly depth: number;
  readonly postList: number;
  readonly cqMod: number;
  readonly wantsPeak: boolean;
  readonly intervalNs: number;
  onInterval(interval: Interval): void;
}

/** One flow of the client: how far it is, and when each operation in flight was posted. */
class Stream {
  readonly #flow: TransferFlow;
  readonly #request: SendWorkRequest;
  readonly #postedNs: Float64Array;
  readonly #options: PumpOptions;
  posted = 0;
  completed = 0;
  hasSilentTail = false;

  constructor(flow: TransferFlow, request: SendWorkRequest, options: PumpOptions) {
    this.#flow = flow;
    this.#request = request;
    this.#options = options;
    this.#postedNs = new Float64Array(options.depth);
  }

  get inFlight(): number {
    return this.posted - this.completed;
  }

  get room(): number {
    return this.#postedNs.length - this.inFlight;
  }

  post(count: number, timeNs: number, isLast: boolean): void {
    const requests: SendWorkRequest[] = [];
    for (let i = 1; i <= count; i++) {
      const wrId = this.posted++;
      this.#postedNs[wrId % this.#postedNs.length] = timeNs;
      const signaled = this.posted % this.#options.cqMod === 0 || (isLast && i === count);
      requests.push({ ...this.#request, wrId, signaled });
      this.hasSilentTail = !signaled;
    }
    this.#flow.qp.postSend(...requests);
  }

  complete(wrId: number, timeNs: number, tell: (latencyNs: number) => void): number {
    const before = this.completed;
    while (this.completed <= wrId) tell(timeNs - this.#postedNs[this.completed++ % this.#postedNs.length]);
    return this.completed - before;
  }
}

/** Completions, or the moments at which the work has to end although there are none. */
class Wakes {
  readonly #cq: CompletionQueue;
  readonly #cancels: Array<() => void> = [];
  #wake: () => void = () => {};
  drainsUntilNs = Number.POSITIVE_INFINITY;

  constructor(cq: CompletionQueue, durationNs: number, interrupted: AbortSignal) {
    this.#cq = cq;
    if (durationNs > 0) this.#at(nowNs() + durationNs);
    const end = () => this.#drain();
    if (interrupted.aborted) end();
    else interrupted.addEventListener('abort', end, { once: true });
    this.#cancels.push(() => interrupted.removeEventListener('abort', end));
  }

  next(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#wake = resolve;
      this.#cq.wait().then(resolve, reject);
    });
  }

  stop(): void {
    for (const cancel of this.#cancels) cancel();
  }

  #at(timeNs: number): void {
    this.#cancels.push(SYSTEM_CLOCK.wakeAt(timeNs, () => this.#drain()));
  }

  #drain(): void {
    if (this.drainsUntilNs === Number.POSITIVE_INFINITY) {
      this.drainsUntilNs = nowNs() + DRAIN_NS;
      this.#at(this.drainsUntilNs);
    }
    this.#wake();
  }
}

export async function pump(
  endpoint: TrafficEndpoint,
  interrupted: AbortSignal,
  options: PumpOptions,
  progress: Progress,
): Promise<RoundTally> {
  const { plan, flows, sendCq } = endpoint;
  const { durationNs, iterations } = plan;
  const latency = new LatencySamples();
  const peak = PeakFinder.forPlan(plan, options.wantsPeak);
  const request = (flow: TransferFlow) => operation(plan.op, endpoint, flow);
  const streams = new Map(flows.map((flow) => [flow.qp.qpn, new Stream(flow, request(flow), options)]));
  const startNs = nowNs();
  const log = new IntervalLog(startNs, options, plan.sizeBytes);
  let polledNs = startNs;
  const isOver = () => interrupted.aborted || (durationNs > 0 && polledNs - startNs >= durationNs);
  const left = (stream: Stream) => (durationNs > 0 ? Number.POSITIVE_INFINITY : iterations - stream.posted);

  const wakes = new Wakes(sendCq, durationNs, interrupted);
  let overNs = 0;
  let isCutShort = false;
  for (;;) {
    if (overNs === 0 && isOver()) overNs = nowNs();
    let inFlight = 0;
    let done = 0;
    for (const stream of streams.values()) {
      for (let batch = options.postList; !isOver() && left(stream) > 0 && stream.room > 0; ) {
        batch = Math.min(batch, left(stream));
        if (stream.room < batch) break;
        const timeNs = nowNs();
        stream.post(batch, timeNs, left(stream) === batch);
        peak?.posted(batch, timeNs);
      }
      // One more message, with a completion, shows that those before it are done.
      if (isOver() && stream.hasSilentTail && stream.room > 0) {
        stream.post(1, nowNs(), true);
        peak?.posted(1, nowNs());
      }
      inFlight += stream.inFlight;
      done += stream.completed;
    }
    isCutShort = inFlight > 0 && nowNs() >= wakes.drainsUntilNs;
    if (inFlight === 0 || isCutShort) break;
    const share = durationNs > 0 ? (polledNs - startNs) / durationNs : done / (iterations * plan.qps);
    progress.update(Math.round(share * 100), `${done} messages`);
    await wakes.next();
    polledNs = nowNs();
    for (const wc of sendCq.poll(sendCq.depth)) {
      check(wc, endpoint);
      const moved = streams.get(wc.qpn)!.complete(Number(wc.wrId), polledNs, (ns) => latency.add(ns));
      peak?.completed(moved, polledNs);
      log.add(moved, polledNs);
    }
  }
  wakes.stop();
  const endNs = isCutShort ? overNs : nowNs();
  const counts = [...streams.values()].map((stream) => stream.completed);
  return {
    counts,
    lost: plan.transport === 'rc' ? 0 : null,
    seconds: (endNs - startNs) / NS_PER_S,
    latency,
    peakBps: peak?.peakBps(plan.sizeBytes) ?? null,
    intervals: log.finish(endNs),
  };
}
