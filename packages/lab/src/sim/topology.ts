/** Hosts are `h0`, `h1`, ... in the order they are counted; switches have names that say their place. */

import { checkKind, checkObject, checkWhole, RoceError } from 'rocev2/internal/core';

/** A full-duplex link between two nodes. */
export interface LinkPlan {
  /** Name of one end. */
  readonly a: string;
  /** Name of the other. */
  readonly b: string;
  /** Bits per second, each way. */
  readonly rateBps: number;
  /** One way. */
  readonly delayNs: number;
}

/** Nodes by name, and the links between them. */
export interface Topology {
  /** Names of hosts, in the order of their addresses. */
  readonly hosts: readonly string[];
  /** Names of switches. */
  readonly switches: readonly string[];
  /** Each between two of these names. */
  readonly links: readonly LinkPlan[];
}

/**
 * Throws ERR_ROCE_INVALID_ARGUMENT for a value that is not a topology, ERR_ROCE_UNKNOWN_NAME for a link to a node that
 * it does not have.
 */
export function checkTopology(topology: Topology): void {
  checkObject('topology', topology, '{ hosts, switches, links }');
  const { hosts, switches, links } = topology;
  const nodes = new Set<unknown>();
  for (const [name, list] of Object.entries({ hosts, switches, links })) {
    checkKind(`topology.${name}`, list, Array.isArray(list), 'a list');
  }
  for (const name of [...hosts, ...switches]) {
    checkKind('the name of a host or switch', name, typeof name === 'string', 'text');
    nodes.add(name);
  }
  for (const link of links) {
    checkObject('a link', link, '{ a, b, rateBps, delayNs }');
    for (const end of [link.a, link.b]) {
      if (nodes.has(end)) continue;
      throw new RoceError(
        'ERR_ROCE_UNKNOWN_NAME',
        `a link ends at ${String(end)}`,
        'give the name of a host or switch',
      );
    }
    const [isRate, isDelay] = [link.rateBps > 0, link.delayNs >= 0];
    checkKind('rateBps of a link', link.rateBps, typeof link.rateBps === 'number' && isRate, 'a number above 0');
    checkKind('delayNs of a link', link.delayNs, typeof link.delayNs === 'number' && isDelay, 'a number of at least 0');
  }
  for (const host of hosts) {
    if (links.some(({ a, b }) => a === host || b === host)) continue;
    throw new RoceError('ERR_ROCE_INVALID_ARGUMENT', `host ${host} has no link`, 'add a link to a switch');
  }
}

/** What all links of a kind have in common. */
export interface LinkKind {
  /** Bits per second, each way. */
  readonly rateBps: number;
  /** One way. */
  readonly delayNs: number;
}

/** The rate of the links of all hosts. Throws ERR_ROCE_CONFLICT where they differ. */
export function hostRateBps({ hosts, links }: Topology): number {
  const names = new Set(hosts);
  const rates = new Set(links.filter(({ a, b }) => names.has(a) || names.has(b)).map(({ rateBps }) => rateBps));
  const [first] = rates;
  if (rates.size === 1) return first;
  throw new RoceError(
    'ERR_ROCE_CONFLICT',
    'the links of the hosts have different rates',
    'set the parameters of the rate control of each flow',
  );
}

/** More nodes than a simulation can have. */
const NODES_MAX = 1_000_000;

/** `hosts` hosts on one switch, `s0`. */
export function star(hosts: number, link: LinkKind): Topology {
  const names = hostNames(hosts);
  return { hosts: names, switches: ['s0'], links: names.map((host) => ({ a: host, b: 's0', ...link })) };
}

/** Two hosts on one switch: A, W and B of the livelock experiment. */
export function pair(link: LinkKind): Topology {
  return star(2, link);
}

/** Half of the hosts on `s0`, the other half on `s1`, one link between the switches. */
export function dumbbell(hosts: number, link: LinkKind, middle: LinkKind): Topology {
  const names = hostNames(hosts);
  return {
    hosts: names,
    switches: ['s0', 's1'],
    links: [
      ...names.map((host, i) => ({ a: host, b: i < hosts / 2 ? 's0' : 's1', ...link })),
      { a: 's0', b: 's1', ...middle },
    ],
  };
}

/** A Clos network of two tiers: every leaf `l0`.. has `hostsPerLeaf` hosts and a link to every spine `p0`... */
export function leafSpine(
  leaves: number,
  spines: number,
  hostsPerLeaf: number,
  link: LinkKind,
  uplink: LinkKind,
): Topology {
  for (const [name, count] of Object.entries({ leaves, spines, hostsPerLeaf })) checkWhole(name, count, 0, NODES_MAX);
  const hosts = hostNames(leaves * hostsPerLeaf);
  const leafNames = numbered('l', leaves);
  const spineNames = numbered('p', spines);
  return {
    hosts,
    switches: [...leafNames, ...spineNames],
    links: [
      ...hosts.map((host, i) => ({ a: host, b: leafNames[Math.floor(i / hostsPerLeaf)], ...link })),
      ...leafNames.flatMap((leaf) => spineNames.map((spine) => ({ a: leaf, b: spine, ...uplink }))),
    ],
  };
}

/**
 * A fat tree of `k`-port switches (Al-Fares et al., SIGCOMM'08): k pods of k/2 edge switches `e0`.. and k/2 aggregation
 * switches `a0`.., (k/2)^2 core switches `c0`.., k^3/4 hosts. Throws ERR_ROCE_OUT_OF_RANGE unless k is even and at
 * least 2.
 */
export function fatTree(k: number, link: LinkKind, uplink: LinkKind): Topology {
  if (!Number.isInteger(k) || k < 2 || k % 2 !== 0) {
    throw new RoceError(
      'ERR_ROCE_OUT_OF_RANGE',
      `a fat tree of ${String(k)}-port switches cannot be built`,
      'k is even: 4, 8',
    );
  }
  const half = k / 2;
  const hosts = hostNames(k * half * half);
  const edges = numbered('e', k * half);
  const aggregations = numbered('a', k * half);
  const cores = numbered('c', half * half);
  const podOf = (i: number) => Math.floor(i / half);
  return {
    hosts,
    switches: [...edges, ...aggregations, ...cores],
    links: [
      ...hosts.map((host, i) => ({ a: host, b: edges[podOf(i)], ...link })),
      ...edges.flatMap((edge, i) =>
        aggregations
          .slice(podOf(i) * half, (podOf(i) + 1) * half)
          .map((aggregation) => ({ a: edge, b: aggregation, ...uplink })),
      ),
      ...aggregations.flatMap((aggregation, i) =>
        cores.slice((i % half) * half, ((i % half) + 1) * half).map((core) => ({ a: aggregation, b: core, ...uplink })),
      ),
    ],
  };
}

/** A chain of switches `s0`.. with `hostsPerSwitch` hosts each: a flow along the chain meets others at every hop. */
export function parkingLot(switches: number, hostsPerSwitch: number, link: LinkKind, middle: LinkKind): Topology {
  for (const [name, count] of Object.entries({ switches, hostsPerSwitch })) checkWhole(name, count, 0, NODES_MAX);
  const hosts = hostNames(switches * hostsPerSwitch);
  const chain = numbered('s', switches);
  return {
    hosts,
    switches: chain,
    links: [
      ...hosts.map((host, i) => ({ a: host, b: chain[Math.floor(i / hostsPerSwitch)], ...link })),
      ...chain.slice(1).map((name, i) => ({ a: chain[i], b: name, ...middle })),
    ],
  };
}

/** Two datacenters `d0` and `d1` of equal size, each one switch, and a long link between them. */
export function region(hosts: number, link: LinkKind, long: LinkKind): Topology {
  const shape = dumbbell(hosts, link, long);
  const rename = (name: string) => name.replace(/^s/, 'd');
  return {
    hosts: shape.hosts,
    switches: shape.switches.map(rename),
    links: shape.links.map((entry) => ({ ...entry, a: rename(entry.a), b: rename(entry.b) })),
  };
}

function hostNames(count: number): string[] {
  return numbered('h', count);
}

function numbered(letter: string, count: number): string[] {
  checkWhole(`the number of nodes ${letter}0, ${letter}1, ...`, count, 0, NODES_MAX);
  return Array.from({ length: count }, (_, i) => `${letter}${i}`);
}

/**
 * Throws ERR_ROCE_INVALID_ARGUMENT when a host cannot be reached although nothing is down; while something is, such
 * hosts are left out.
 */
export function shortestPaths(
  topology: Topology,
  down: ReadonlySet<LinkPlan> = new Set(),
): Map<string, Map<string, string[]>> {
  const neighbours = new Map<string, string[]>();
  for (const name of [...topology.hosts, ...topology.switches]) neighbours.set(name, []);
  for (const link of topology.links) {
    if (down.has(link)) continue;
    neighbours.get(link.a)!.push(link.b);
    neighbours.get(link.b)!.push(link.a);
  }
  const routes = new Map<string, Map<string, string[]>>(topology.switches.map((name) => [name, new Map()]));
  for (const host of topology.hosts) {
    const hops = new Map<string, number>([[host, 0]]);
    const reached = [host];
    for (const node of reached) {
      if (node !== host && !routes.has(node)) continue;
      for (const next of neighbours.get(node)!) {
        if (hops.has(next)) continue;
        hops.set(next, hops.get(node)! + 1);
        reached.push(next);
      }
    }
    for (const name of topology.switches) {
      const distance = hops.get(name);
      if (distance === undefined) {
        if (down.size > 0) continue;
        throw new RoceError('ERR_ROCE_INVALID_ARGUMENT', `no links lead from ${name} to ${host}`);
      }
      routes.get(name)!.set(
        host,
        neighbours.get(name)!.filter((next) => hops.get(next) === distance - 1),
      );
    }
  }
  return routes;
}
