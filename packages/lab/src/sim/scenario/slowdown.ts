/**
 * Slowdown of flow completion times by flow size: time over the time alone in the network. Flows are sorted by size
 * into twenty equal parts, with the percentiles of HPCC's figures (Li et al., SIGCOMM'19, figures 11 to 13,
 * `fct_analysis.py`).
 */

import { ETHERNET_WIRE_BYTES } from 'rocev2/internal/packet';
import { quantile } from '../statistics.js';
import type { LinkPlan, Topology } from '../topology.js';
import { shortestPaths } from '../topology.js';
import type { FlowFacts } from './facts.js';
import type { SlowdownResult } from './result.js';

const PARTS = 20;

/** Ethernet, IPv4, UDP, BTH and ICRC around the payload of a packet in the middle of a message. */
export const PACKET_OVERHEAD_BYTES = 14 + 20 + 8 + 12 + 4 + ETHERNET_WIRE_BYTES;
/** An acknowledgement: the same with an AETH and no payload. */
const ACK_WIRE_BYTES = PACKET_OVERHEAD_BYTES + 4;

type Path = readonly LinkPlan[];

export class UnloadedTimes {
  readonly #topology: Topology;
  readonly #routes: ReadonlyMap<string, ReadonlyMap<string, readonly string[]>>;
  readonly #links = new Map<string, LinkPlan>();
  readonly #paths = new Map<string, Path>();
  readonly #mtu: number;

  constructor(topology: Topology, mtu: number) {
    this.#topology = topology;
    this.#routes = shortestPaths(topology);
    this.#mtu = mtu;
    for (const link of topology.links) {
      this.#links.set(`${link.a}>${link.b}`, link);
      this.#links.set(`${link.b}>${link.a}`, link);
    }
  }

  /**
   * The time from the first packet to the last acknowledgement of `bytes` that nothing delays: each packet is stored
   * and forwarded at every hop, the slowest link of the way carries the others behind the first one.
   */
  ns(from: string, to: string, bytes: number): number {
    const path = this.#path(from, to);
    const packets = Math.ceil(bytes / this.#mtu);
    const wireBytes = bytes + packets * PACKET_OVERHEAD_BYTES;
    const firstBytes = Math.min(bytes, this.#mtu) + PACKET_OVERHEAD_BYTES;
    let ns = 0;
    let slowestBps = Number.POSITIVE_INFINITY;
    for (const { rateBps, delayNs } of path) {
      ns += 2 * delayNs + ((firstBytes + ACK_WIRE_BYTES) * 8e9) / rateBps;
      slowestBps = Math.min(slowestBps, rateBps);
    }
    return ns + ((wireBytes - firstBytes) * 8e9) / slowestBps;
  }

  #path(from: string, to: string): Path {
    const key = `${from}>${to}`;
    let path = this.#paths.get(key);
    if (path === undefined) {
      path = this.#walk(from, to);
      this.#paths.set(key, path);
    }
    return path;
  }

  #walk(from: string, to: string): Path {
    const { a, b } = this.#topology.links.find((link) => link.a === from || link.b === from)!;
    const path = [this.#links.get(`${a}>${b}`)!];
    for (let at = a === from ? b : a; at !== to; ) {
      const next = this.#routes.get(at)!.get(to)![0];
      path.push(this.#links.get(`${at}>${next}`)!);
      at = next;
    }
    return path;
  }
}

/**
 * Of flows that have begun and end; one that has not ended counts with the time so far, so that percentiles are bounds
 * from below.
 */
export function slowdownsOf(flows: readonly FlowFacts[], unloaded: UnloadedTimes, nowNs: number): SlowdownResult[] {
  const begun = flows
    .filter(({ plan }) => plan.bytes < Number.POSITIVE_INFINITY && plan.startNs <= nowNs)
    .sort((one, other) => one.plan.bytes - other.plan.bytes);
  const parts = Math.min(PARTS, begun.length);
  return Array.from({ length: parts }, (_, k) => {
    const part = begun.slice(Math.floor((k * begun.length) / parts), Math.floor(((k + 1) * begun.length) / parts));
    const slowdowns = Float64Array.from(part, ({ plan, completedNs = nowNs }) => {
      const times = (completedNs - plan.startNs) / unloaded.ns(plan.from, plan.to, plan.bytes);
      return Math.max(1, times);
    }).sort();
    return {
      bytesMax: part[part.length - 1].plan.bytes,
      count: part.length,
      unfinished: part.filter(({ completedNs }) => completedNs === undefined).length,
      p50: quantile(slowdowns, 0.5),
      p95: quantile(slowdowns, 0.95),
      p99: quantile(slowdowns, 0.99),
    };
  });
}
