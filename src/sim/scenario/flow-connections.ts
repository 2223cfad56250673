/**
 * When the queue pairs of flows are there: all of them from before the run to its end, or each from shortly before its flow starts until nothing of it is on the way any more.
 * Both give the same packets at the same times. Pairs are made and freed between two steps of the run, where promises can be waited for.
 *
 * A pair may go when its flow has completed, both ends are idle, and no packet of it is under way: as many have arrived as have left. If some were lost, or fault rules make
 * copies, that cannot be told by counting; then it goes when none has left or arrived for the quiet time (`quiet-time.ts`). A packet that comes even later ends the run with an error,
 * because the answer to it would be missing.
 */

import type { NetworkPart } from '../divided-network.js';
import { connectFlow, disconnectFlow } from './connect-flow.js';
import type { Flow } from './flow.js';
import type { Scenario } from './schema.js';

interface FlowConnectionsOptions {
  readonly flows: readonly Flow[];
  readonly nic: Scenario['nic'];
  /** Packets that arrive may be copies of others. */
  readonly hasCopies: boolean;
  readonly quietNs: number;
  /** Of the network; only flows that have an end in it are connected. */
  readonly part: NetworkPart;
}

/** Makes and frees the queue pairs of flows. */
export class FlowConnections {
  readonly #nic: Scenario['nic'];
  readonly #hasCopies: boolean;
  readonly #quietNs: number;
  readonly #part: NetworkPart;
  /** Not connected yet; the first to start is the last. */
  readonly #waiting: Flow[];
  #connected: Flow[] = [];

  constructor({ flows, nic, hasCopies, quietNs, part }: FlowConnectionsOptions) {
    this.#nic = nic;
    this.#hasCopies = hasCopies;
    this.#quietNs = quietNs;
    this.#part = part;
    const here = flows.filter(({ plan: { from, to } }) => part.owns(from) || part.owns(to));
    this.#waiting = here.sort((a, b) => b.plan.startNs - a.plan.startNs || b.plan.id - a.plan.id);
  }

  /** Flows that have queue pairs. */
  get count(): number {
    return this.#connected.length;
  }

  /** Connects all flows. */
  connectAll(): Promise<void> {
    return this.connectUntil(Number.POSITIVE_INFINITY);
  }

  /** Connects the flows that start not later than `untilNs`. */
  async connectUntil(untilNs: number): Promise<void> {
    for (
      let flow = this.#waiting.at(-1);
      flow !== undefined && flow.plan.startNs <= untilNs;
      flow = this.#waiting.at(-1)
    ) {
      this.#waiting.pop();
      await connectFlow(flow, this.#nic, this.#part);
      this.#connected.push(flow);
    }
  }

  /** Frees the queue pairs that nobody will miss. */
  async freeUnused(nowNs: number): Promise<void> {
    const done = this.#connected.filter((flow) => this.#isOver(flow, nowNs));
    if (done.length === 0) return;
    for (const flow of done) await disconnectFlow(flow);
    this.#connected = this.#connected.filter(({ pair }) => pair !== undefined);
  }

  #isOver(flow: Flow, nowNs: number): boolean {
    if (flow.completedNs === undefined) return false;
    const allArrived = flow.packetsUnderWay === 0 && !this.#hasCopies;
    if (!allArrived && nowNs - flow.lastPacketNs <= this.#quietNs) return false;
    const { source, sink, sourceQpn, sinkQpn } = flow;
    return source.station.host.nic.isIdle(sourceQpn) && sink.station.host.nic.isIdle(sinkQpn);
  }
}
