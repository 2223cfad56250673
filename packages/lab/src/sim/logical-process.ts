/**
 * How a network is divided into logical processes that are simulated side by side. Racks (a switch with its hosts) stay
 * whole; a logical process may run as far ahead of the others as a frame takes at least on any cable between two
 * logical processes: conservative synchronisation with windows (Nicol, JACM 40(2), 1993).
 */

import { RoceError } from 'rocev2/internal/core';
import { ETHERNET_BYTES, ETHERNET_WIRE_BYTES } from 'rocev2/internal/packet';
import type { DepartureSink } from './cable.js';
import type { LinkPlan, Topology } from './topology.js';

/** A logical process: the nodes of a network that are simulated here. */
export interface LogicalProcess {
  owns(node: string): boolean;
  /** Frames on the cable of this number arrive in another logical process. */
  departureOf(cable: number): DepartureSink;
}

/** The logical process that is all of the network. */
export const WHOLE_NETWORK: LogicalProcess = {
  owns: () => true,
  departureOf: () => {
    throw new RoceError('ERR_ROCE_CONFLICT', 'nothing leaves a network that is not divided');
  },
};

/** Work at a node, in frames handled: a host computes more for a frame than a port of a switch. */
const HOST_WORK = 3;

/**
 * The number of the logical process, from 0, of each node. Throws ERR_ROCE_CONFLICT if there are fewer racks than
 * logical processes.
 */
export function divide(topology: Topology, processes: number): ReadonlyMap<string, number> {
  const links = linksByNode(topology);
  const isHost = new Set(topology.hosts);
  const hostsOf = (node: string) => links.get(node)!.filter((next) => isHost.has(next));
  const racks = topology.switches.filter((name) => hostsOf(name).length > 0);
  if (racks.length < processes) {
    throw new RoceError(
      'ERR_ROCE_CONFLICT',
      `cores: ${processes} parts need ${processes} switches with hosts, and this topology has ${racks.length}`,
      `set cores to ${racks.length} or less; the result is the same`,
    );
  }
  const processOf = new Map<string, number>();
  const work = new Float64Array(processes);
  const assign = (node: string, logicalProcess: number): void => {
    processOf.set(node, logicalProcess);
    work[logicalProcess] += isHost.has(node) ? HOST_WORK : links.get(node)!.length;
  };
  let logicalProcess = 0;
  let hostsBefore = 0;
  for (const [i, rack] of racks.entries()) {
    const isFull = hostsBefore >= ((logicalProcess + 1) * topology.hosts.length) / processes;
    const isNeeded = racks.length - i <= processes - 1 - logicalProcess;
    if (i > 0 && logicalProcess < processes - 1 && (isFull || isNeeded)) logicalProcess++;
    for (const node of [rack, ...hostsOf(rack)]) assign(node, logicalProcess);
    hostsBefore += hostsOf(rack).length;
  }
  for (const name of topology.switches) {
    if (!processOf.has(name)) assign(name, bestProcess(links.get(name)!, processOf, work));
  }
  return processOf;
}

/**
 * Of the logical processes that have at least half as many neighbours as the one that has most, the one with the least
 * work.
 */
function bestProcess(
  neighbours: readonly string[],
  processOf: ReadonlyMap<string, number>,
  work: Float64Array,
): number {
  const near = new Float64Array(work.length);
  for (const next of neighbours) {
    const logicalProcess = processOf.get(next);
    if (logicalProcess !== undefined) near[logicalProcess]++;
  }
  const most = Math.max(...near);
  let best = -1;
  for (let logicalProcess = 0; logicalProcess < work.length; logicalProcess++) {
    if (2 * near[logicalProcess] >= most && (best < 0 || work[logicalProcess] < work[best])) best = logicalProcess;
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

/**
 * The lookahead bound: the shortest time from when a frame begins to leave one logical process to its arrival in
 * another, nanoseconds; Infinity if no link leads from one to another.
 */
export function lookaheadNs(links: readonly LinkPlan[], processOf: ReadonlyMap<string, number>): number {
  let least = Number.POSITIVE_INFINITY;
  for (const { a, b, rateBps, delayNs } of links) {
    if (processOf.get(a) === processOf.get(b)) continue;
    // No frame is shorter than its header.
    least = Math.min(least, delayNs + ((ETHERNET_BYTES + ETHERNET_WIRE_BYTES) * 8e9) / rateBps);
  }
  return least;
}
