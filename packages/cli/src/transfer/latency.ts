import { setImmediate as nextTurn } from 'node:timers/promises';
import { type CliIo, LatencySamples, type Progress } from '@rocev2/command';
import { NS_PER_S, RoceError } from 'rocev2/internal/core';
import { nowNs } from 'rocev2/internal/driver';
import type { CompletionQueue, WorkCompletion } from 'rocev2/internal/verbs';
import { pollNic } from './spinning.js';
import {
  check,
  checkLength,
  messageData,
  operation,
  postReceive,
  type RoundTally,
  type TrafficEndpoint,
} from './transfer-round.js';
import { WaitedTime } from './waited-time.js';

export interface LossRule {
  /** Infinity where the transport repeats what is lost. */
  readonly waitMs: number;
  readonly endsRun: boolean;
}

export const NOTHING_IS_LOST: LossRule = { waitMs: Number.POSITIVE_INFINITY, endsRun: false };
export const LOST_IS_SKIPPED: LossRule = { waitMs: 500, endsRun: false };
export const LOST_ENDS_RUN: LossRule = { waitMs: 5_000, endsRun: true };

/** How a latency test waits: asks after every poll of the NIC, as perftest spins, or sleeps until there is an event. */
export type Waiting = 'poll' | 'events';

const LOOK_MS = 100;
const FIRST_KEEP_ALIVE_LOOKS = 10;

/**
 * Finds a peer that stops after its NIC has acknowledged everything: nothing is retransmitted then, so no retry limit
 * would end the wait for its answer. After 1, 2, 4 ... s, a WRITE without data asks for an acknowledgement. One timer
 * serves all rounds.
 */
class KeepAlive {
  readonly #endpoint: TrafficEndpoint;
  readonly #timer = setInterval(() => this.#look(), LOOK_MS);
  #looks = 0;
  #writesAtLook = Number.POSITIVE_INFINITY;
  #isDue = false;
  #completion: Promise<void> | undefined;
  #wake: () => void = () => {};

  constructor(endpoint: TrafficEndpoint) {
    this.#endpoint = endpoint;
  }

  beginWait(): void {
    this.#looks = 0;
    this.#writesAtLook = FIRST_KEEP_ALIVE_LOOKS;
    this.#isDue = false;
  }

  /** Whether it is time to look for failed requests. */
  takeDue(): boolean {
    const isDue = this.#isDue;
    this.#isDue = false;
    return isDue;
  }

  /** Ends with a completion, or when it is time to look for failed requests. */
  async next(cq: CompletionQueue): Promise<void> {
    this.#completion ??= cq.wait().finally(() => {
      this.#completion = undefined;
    });
    await Promise.race([
      this.#completion,
      new Promise<void>((resolve) => {
        this.#wake = resolve;
      }),
    ]);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    const { device, flows } = this.#endpoint;
    this.#isDue = true;
    this.#wake();
    if (++this.#looks < this.#writesAtLook || device.isClosed) return;
    this.#writesAtLook *= 2;
    flows[0].qp.postSend({ opcode: 'RDMA_WRITE', sges: [], remoteAddr: 0n, rkey: 0, signaled: false });
  }
}

async function nextCompletion(
  cq: CompletionQueue,
  waiting: Waiting,
  endpoint: TrafficEndpoint,
  limitMs = Number.POSITIVE_INFINITY,
  keepAlive?: KeepAlive,
): Promise<WorkCompletion | undefined> {
  keepAlive?.beginWait();
  const waited = new WaitedTime(limitMs);
  for (;;) {
    const wc = cq.pollOne();
    if (wc !== undefined) {
      check(wc, endpoint);
      return wc;
    }
    if (waited.isOver()) return undefined;
    if (waiting === 'poll') {
      if (pollNic(endpoint.device)) continue;
      await nextTurn();
    } else if (keepAlive !== undefined) await keepAlive.next(cq);
    else if (limitMs === Number.POSITIVE_INFINITY) await cq.wait();
    else await waitAtMost(cq, waited.sleepMs);
    if (!endpoint.channel.isOpen) throw new RoceError('ERR_ROCE_CONNECT', 'the peer process is gone');
  }
}

async function waitAtMost(cq: CompletionQueue, timeoutMs: number): Promise<void> {
  try {
    await cq.wait({ timeoutMs });
  } catch (error) {
    if ((error as RoceError).code !== 'ERR_ROCE_TIMEOUT') throw error;
  }
}

function checkSends(endpoint: TrafficEndpoint): void {
  const { sendCq } = endpoint;
  for (let wc = sendCq.pollOne(); wc !== undefined; wc = sendCq.pollOne()) check(wc, endpoint);
}

class WritePingPong {
  readonly #endpoint: TrafficEndpoint;
  readonly #sourceOffset: number;

  constructor(endpoint: TrafficEndpoint) {
    this.#endpoint = endpoint;
    this.#sourceOffset = endpoint.flows[0].secondOffset;
  }

  get #mark(): number {
    const { region, plan, flows } = this.#endpoint;
    return region.bytes[flows[0].offset + plan.sizeBytes - 1];
  }

  post(round: number): void {
    const { region, plan, flows } = this.#endpoint;
    const [{ qp, agreement }] = flows;
    region.bytes[this.#sourceOffset + plan.sizeBytes - 1] = round;
    const data = messageData(this.#endpoint, this.#sourceOffset);
    const { addr, rkey } = agreement.region!;
    qp.postSend({ opcode: 'RDMA_WRITE', ...data, remoteAddr: addr, rkey, wrId: round });
  }

  arrived(round: number, limitMs: number, keepAlive?: KeepAlive): Promise<boolean> {
    return this.#until((mark) => mark === (round & 0xff), limitMs, keepAlive);
  }

  async next(last: number, limitMs: number): Promise<number | undefined> {
    return (await this.#until((mark) => mark !== last, limitMs)) ? this.#mark : undefined;
  }

  /** The peer's CPU is not involved: poll the memory. */
  async #until(holds: (mark: number) => boolean, limitMs: number, keepAlive?: KeepAlive): Promise<boolean> {
    const { channel, device } = this.#endpoint;
    const waited = new WaitedTime(limitMs);
    keepAlive?.beginWait();
    while (!holds(this.#mark)) {
      if (pollNic(device)) continue;
      await nextTurn();
      if (waited.isOver()) return holds(this.#mark);
      if (keepAlive?.takeDue() === true) checkSends(this.#endpoint);
      if (!channel.isOpen) throw new RoceError('ERR_ROCE_CONNECT', 'the peer process is gone');
    }
    checkSends(this.#endpoint);
    return true;
  }
}

/** Results of a latency round instead of its latency in ns. */
const UNMEASURED = undefined;
const LOST = Symbol('no answer');

async function rounds(
  endpoint: TrafficEndpoint,
  io: CliIo,
  loss: LossRule,
  progress: Progress,
  body: (round: number, keepAlive?: KeepAlive) => Promise<number | typeof UNMEASURED | typeof LOST>,
): Promise<RoundTally> {
  const { plan } = endpoint;
  const keepAlive = loss.waitMs === Number.POSITIVE_INFINITY ? new KeepAlive(endpoint) : undefined;
  const latency = new LatencySamples();
  const startNs = nowNs();
  const { durationNs } = plan;
  let round = 0;
  let lost = 0;
  try {
    while (!io.interrupted.aborted && !(loss.endsRun && lost > 0)) {
      const elapsedNs = nowNs() - startNs;
      if (durationNs > 0 ? elapsedNs >= durationNs : round >= plan.iterations) break;
      const outcome = await body(++round, keepAlive);
      if (outcome === LOST) lost++;
      else if (outcome !== UNMEASURED) latency.add(outcome);
      const share = durationNs > 0 ? elapsedNs / durationNs : round / plan.iterations;
      if ((round & 0xff) === 0) {
        progress.update(Math.round(share * 100), `${round} rounds`);
        await nextTurn(); // Copies to mapped regions complete without it.
      }
    }
  } finally {
    keepAlive?.stop();
  }
  return { counts: [round - lost], lost, seconds: (nowNs() - startNs) / NS_PER_S, latency };
}

export function followWrites(
  endpoint: TrafficEndpoint,
  io: CliIo,
  loss: LossRule,
  progress: Progress,
): Promise<RoundTally> {
  const pingPong = new WritePingPong(endpoint);
  let postedNs: number | undefined;
  return rounds(endpoint, io, loss, progress, async (round) => {
    if (!(await pingPong.arrived(round, loss.waitMs))) return LOST;
    const arrivedNs = nowNs();
    const latencyNs = postedNs === undefined ? UNMEASURED : (arrivedNs - postedNs) / 2;
    postedNs = arrivedNs;
    pingPong.post(round);
    return latencyNs;
  });
}

export function measureLatency(
  endpoint: TrafficEndpoint,
  io: CliIo,
  waiting: Waiting,
  loss: LossRule,
  progress: Progress,
): Promise<RoundTally> {
  const { plan, flows, sendCq } = endpoint;
  const [flow] = flows;
  if (plan.op === 'send') return echoSends(endpoint, io, waiting, loss, progress);
  if (plan.op === 'write') {
    const pingPong = new WritePingPong(endpoint);
    return rounds(endpoint, io, loss, progress, async (round, keepAlive) => {
      const startNs = nowNs();
      pingPong.post(round);
      const hasArrived = await pingPong.arrived(round, loss.waitMs, keepAlive);
      return hasArrived ? (nowNs() - startNs) / 2 : LOST;
    });
  }
  const request = operation(plan.op, endpoint, flow);
  return rounds(endpoint, io, loss, progress, async () => {
    const startNs = nowNs();
    flow.qp.postSend(request);
    await nextCompletion(sendCq, waiting, endpoint);
    return nowNs() - startNs;
  });
}

/** An answer that comes after it was given up is dropped before the next message leaves. */
function echoSends(
  endpoint: TrafficEndpoint,
  io: CliIo,
  waiting: Waiting,
  loss: LossRule,
  progress: Progress,
): Promise<RoundTally> {
  const { plan, flows, sendCq, recvCq } = endpoint;
  const [flow] = flows;
  const request = operation(plan.op, endpoint, flow);
  let isPosted = false;
  return rounds(endpoint, io, loss, progress, async (_round, keepAlive) => {
    for (let late = recvCq.pollOne(); late !== undefined; late = recvCq.pollOne()) isPosted = false;
    if (!isPosted) postReceive(endpoint, 0);
    isPosted = true;
    const startNs = nowNs();
    flow.qp.postSend(request);
    const answer = await nextCompletion(recvCq, waiting, endpoint, loss.waitMs, keepAlive);
    const halfNs = (nowNs() - startNs) / 2;
    await nextCompletion(sendCq, waiting, endpoint);
    if (answer === undefined) return LOST;
    checkLength(answer, endpoint);
    isPosted = false;
    return halfNs;
  });
}

export async function answerLatency(
  endpoint: TrafficEndpoint,
  waiting: Waiting,
  loss: LossRule,
  rounds = Number.POSITIVE_INFINITY,
): Promise<number> {
  const { plan, flows, recvCq } = endpoint;
  const [{ qp, offset, agreement }] = flows;
  let answered = 0;
  try {
    if (plan.op === 'write') {
      const pingPong = new WritePingPong(endpoint);
      let mark: number | undefined = 0;
      for (; answered < rounds && !endpoint.device.isClosed; answered++) {
        mark = await pingPong.next(mark, loss.waitMs);
        if (mark === undefined) return answered;
        pingPong.post(mark);
      }
    } else if (plan.op === 'send') {
      for (; answered < rounds && !endpoint.device.isClosed; answered++) {
        const message = await nextCompletion(recvCq, waiting, endpoint, loss.waitMs);
        if (message === undefined) return answered;
        checkLength(message, endpoint);
        endpoint.arrivals.add();
        postReceive(endpoint, 0);
        checkSends(endpoint);
        qp.postSend({ opcode: 'SEND', ...messageData(endpoint, offset), ...agreement.destination });
      }
    }
  } catch (error) {
    if (endpoint.channel.isOpen && !endpoint.device.isClosed) throw error;
  }
  return answered;
}
