/**
 * How a network is divided into parts that are simulated side by side. Racks (a switch with its hosts) stay whole; a part may run as far ahead of the others as a frame takes at least
 * on any cable between two parts: conservative synchronisation with windows (Nicol, JACM 40(2), 1993).
 */

import { RoceError } from 'rocev2/internal/core';
import { ETHERNET_BYTES, ETHERNET_WIRE_BYTES } from 'rocev2/internal/packet';
import type { DepartureSink } from './cable.js';
import type { LinkPlan, Topology } from './topology.js';

/** The part of a network that is simulated here. */
export interface NetworkPart {
  /** The node of this name belongs to it. */
  owns(node: string): boolean;
  /** Frames on the cable of this number arrive in another part. */
  departureOf(cable: number): DepartureSink;
}

/** The part that is all of the network. */
export const WHOLE_NETWORK: NetworkPart = {
  owns: () => true,
  departureOf: () => {
    throw new RoceError('ERR_ROCE_CONFLICT', 'nothing leaves a network that is not divided');
  },
};

/** Work at a node, in frames handled: a host computes more for a frame than a port of a switch. */
const HOST_WORK = 3;

/**
 * The number of the part, from 0, of each node. Throws ERR_ROCE_CONFLICT if there are fewer racks than parts.
 */
export function divide(topology: Topology, parts: number): ReadonlyMap<string, number> {
  const links = linksByNode(topology);
  const isHost = new Set(topology.hosts);
  const hostsOf = (node: string) => links.get(node)!.filter((next) => isHost.has(next));
  const racks = topology.switches.filter((name) => hostsOf(name).length > 0);
  if (racks.length < parts) {
    throw new RoceError(
      'ERR_ROCE_CONFLICT',
      `cores: ${parts} parts need ${parts} switches with hosts, and this topology has ${racks.length}`,
      `set cores to ${racks.length} or less; the result is the same`,
    );
  }
  const partOf = new Map<string, number>();
  const work = new Float64Array(parts);
  const assign = (node: string, part: number): void => {
    partOf.set(node, part);
    work[part] += isHost.has(node) ? HOST_WORK : links.get(node)!.length;
  };
  let part = 0;
  let hostsBefore = 0;
  for (const [i, rack] of racks.entries()) {
    const isFull = hostsBefore >= ((part + 1) * topology.hosts.length) / parts;
    const isNeeded = racks.length - i <= parts - 1 - part;
    if (i > 0 && part < parts - 1 && (isFull || isNeeded)) part++;
    for (const node of [rack, ...hostsOf(rack)]) assign(node, part);
    hostsBefore += hostsOf(rack).length;
  }
  for (const name of topology.switches) {
    if (!partOf.has(name)) assign(name, bestPart(links.get(name)!, partOf, work));
  }
  return partOf;
}

/** Of the parts that have at least half as many neighbours as the one that has most, the one with the least work. */
function bestPart(neighbours: readonly string[], partOf: ReadonlyMap<string, number>, work: Float64Array): number {
  const near = new Float64Array(work.length);
  for (const next of neighbours) {
    const part = partOf.get(next);
    if (part !== undefined) near[part]++;
  }
  const most = Math.max(...near);
  let best = -1;
  for (let part = 0; part < work.length; part++) {
    if (2 * near[part] >= most && (best < 0 || work[part] < work[best])) best = part;
  }
  return best;
}

function linksByNode({ hosts, switches, links }: Topology): Map<string, string[]> {
  const neighbours = new Map<string, string[]>([...hosts, ...switches].map((name) => [name, []]));
  for (const { a, b } of links) {
    neighbours.get(a)!.push(b);
    neighbours.get(b)!.push(a);
  }
  return neighbours;
}

/** What passes at least from when a frame begins to leave one part to its arrival in another, nanoseconds; Infinity if no link leads from one to another. */
export function lookaheadNs(links: readonly LinkPlan[], partOf: ReadonlyMap<string, number>): number {
  let least = Number.POSITIVE_INFINITY;
  for (const { a, b, rateBps, delayNs } of links) {
    if (partOf.get(a) === partOf.get(b)) continue;
    // No frame is shorter than its header.
    least = Math.min(least, delayNs + ((ETHERNET_BYTES + ETHERNET_WIRE_BYTES) * 8e9) / rateBps);
  }
  return least;
}
