/** The longest lifetime of a packet in the network of a scenario. */

import { BUFFER_BYTES } from '../../switch/buffer-layout.js';
import { QUEUE_PACKETS } from '../../switch/traffic-manager.js';
import type { Topology } from '../topology.js';
import type { Scenario } from './schema.js';

/** Headers of every layer, preamble and gap: more than there are. */
const FRAME_OVERHEAD_BYTES = 200;
/** Paths around failed links are longer, and pauses delay others. */
const DETOUR = 2;

/**
 * A time after which a packet has arrived or is lost. In each switch of the longest path it waits for a full memory (or
 * queue) at the rate of the slowest link; the result is twice that. It does not bound packets that are stopped by
 * pauses without end, by a `block`, or by a fault rule that holds packets back.
 */
export function packetLifetimeNs({ switch: config, nic, pipelines }: Scenario, topology: Topology): number {
  const { buffer, queuePackets = QUEUE_PACKETS } = config;
  const waitingBytes =
    buffer === undefined ? queuePackets * (nic.mtu + FRAME_OVERHEAD_BYTES) : (buffer.totalBytes ?? BUFFER_BYTES);
  const slowestBps = Math.min(...topology.links.map(({ rateBps }) => rateBps));
  const longestNs = Math.max(...topology.links.map(({ delayNs }) => delayNs));
  const hops = longestPath(topology);
  const inPipelineNs = Math.max(
    0,
    ...pipelines.map(({ buffer: bytes, hit, miss }) => (bytes / 64) * Math.max(hit, miss)),
  );
  return DETOUR * (hops * ((waitingBytes * 8e9) / slowestBps + longestNs) + inPipelineNs);
}

function longestPath({ hosts, links }: Topology): number {
  const neighbours = new Map<string, string[]>();
  const add = (from: string, to: string): void => {
    const known = neighbours.get(from);
    if (known === undefined) neighbours.set(from, [to]);
    else known.push(to);
  };
  for (const { a, b } of links) {
    add(a, b);
    add(b, a);
  }
  let longest = 0;
  for (const first of new Set(hosts.flatMap((host) => neighbours.get(host) ?? []))) {
    const hops = new Map([[first, 0]]);
    // A map iterates in insertion order, so it is its own queue, and the last node is the farthest.
    for (const [node, distance] of hops) {
      for (const next of neighbours.get(node) ?? []) if (!hops.has(next)) hops.set(next, distance + 1);
      longest = Math.max(longest, distance);
    }
  }
  return longest + 1;
}
