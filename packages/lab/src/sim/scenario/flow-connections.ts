/**
 * Lifetime of the queue pairs of flows: all of them exist from before the run to its end, or each from shortly before
 * its flow starts until none of its packets is in flight. Both give the same packets at the same times. Pairs are made
 * and freed between two steps of the run, where promises can be awaited.
 *
 * A pair is freed when its flow has completed, both ends are idle, and no packet of it is in flight: as many have
 * arrived as have left. If some were lost, or fault rules make copies, counting does not show this; then it is freed
 * when no packet has left or arrived for the lifetime of a packet (`packet-lifetime.ts`). A packet that arrives even
 * later ends the run with an error, because its answer would be missing. If a flow has one end in another part of the
 * network, both logical processes decide by what each reports of its end (`flow-ends.ts`).
 */

import type { LogicalProcess } from '../logical-process.js';
import { connectFlow, disconnectFlow } from './connect-flow.js';
import type { Flow } from './flow.js';
import type { FlowEnds } from './flow-ends.js';
import type { Scenario } from './schema.js';

interface FlowConnectionsOptions {
  readonly flows: readonly Flow[];
  readonly nic: Scenario['nic'];
  readonly hasCopies: boolean;
  readonly lifetimeNs: number;
  readonly logicalProcess: LogicalProcess;
  /**
   * What other logical processes tell of the ends that they have. Only where pairs are freed and there are other
   * logical processes.
   */
  readonly ends: FlowEnds | undefined;
}

export class FlowConnections {
  readonly #nic: Scenario['nic'];
  readonly #hasCopies: boolean;
  readonly #lifetimeNs: number;
  readonly #logicalProcess: LogicalProcess;
  readonly #ends: FlowEnds | undefined;
  readonly #waiting: Flow[];
  #connected: Flow[] = [];

  constructor({ flows, nic, hasCopies, lifetimeNs, logicalProcess, ends }: FlowConnectionsOptions) {
    this.#nic = nic;
    this.#hasCopies = hasCopies;
    this.#lifetimeNs = lifetimeNs;
    this.#logicalProcess = logicalProcess;
    this.#ends = ends;
    const here = flows.filter(({ plan: { from, to } }) => logicalProcess.owns(from) || logicalProcess.owns(to));
    this.#waiting = here.sort((a, b) => b.plan.startNs - a.plan.startNs || b.plan.id - a.plan.id);
  }

  get count(): number {
    return this.#connected.length;
  }

  connectAll(): Promise<void> {
    return this.connectUntil(Number.POSITIVE_INFINITY);
  }

  async connectUntil(untilNs: number): Promise<void> {
    for (
      let flow = this.#waiting.at(-1);
      flow !== undefined && flow.plan.startNs <= untilNs;
      flow = this.#waiting.at(-1)
    ) {
      this.#waiting.pop();
      await connectFlow(flow, this.#nic, this.#logicalProcess);
      this.#connected.push(flow);
    }
  }

  /**
   * Tells other logical processes of the ends that are here and have their peer there. All logical processes tell at
   * one time, and only then {@link freeUnused}.
   */
  tellEnds(): void {
    if (this.#ends === undefined) return;
    for (const flow of this.#connected) {
      if (isDivided(flow)) this.#ends.tell(flow, flow.pair!.sourceQp !== undefined, isIdleHere(flow));
    }
  }

  async freeUnused(nowNs: number): Promise<void> {
    const done = this.#connected.filter((flow) => this.#isOver(flow, nowNs));
    if (done.length === 0) return;
    for (const flow of done) await disconnectFlow(flow);
    this.#connected = this.#connected.filter(({ pair }) => pair !== undefined);
  }

  #isOver(flow: Flow, nowNs: number): boolean {
    const other = isDivided(flow) ? this.#ends!.read(flow.plan.id, flow.pair!.sourceQp === undefined) : undefined;
    if (flow.completedNs === undefined && other?.isCompleted !== true) return false;
    const packetsUnderWay = flow.packetsUnderWay + (other?.packetsUnderWay ?? 0);
    const lastPacketNs = Math.max(flow.lastPacketNs, other?.lastPacketNs ?? 0);
    const allArrived = packetsUnderWay === 0 && !this.#hasCopies;
    if (!allArrived && nowNs - lastPacketNs <= this.#lifetimeNs) return false;
    return other?.isIdle !== false && isIdleHere(flow);
  }
}

/** One of its ends is in another logical process. */
function isDivided({ pair }: Flow): boolean {
  return pair!.sourceQp === undefined || pair!.sinkQp === undefined;
}

/** None of its ends in this logical process sends anything unless a packet arrives. */
function isIdleHere({ source, sink, sourceQpn, sinkQpn, pair }: Flow): boolean {
  return (
    (pair!.sourceQp === undefined || source.station.host.nic.isIdle(sourceQpn)) &&
    (pair!.sinkQp === undefined || sink.station.host.nic.isIdle(sinkQpn))
  );
}
