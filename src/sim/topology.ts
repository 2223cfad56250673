/**
 * Shapes of networks: which hosts and switches there are, and the links between them. Pure data; `network.ts` builds it.
 *
 * Hosts are `h0`, `h1`, ... in the order they are counted; switches have names that say their place.
 */

import { RoceError } from '../core/errors.js';

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

/** What all links of a kind have in common. */
interface LinkKind {
  readonly rateBps: number;
  readonly delayNs: number;
}

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
  return Array.from({ length: count }, (_, i) => `${letter}${i}`);
}

/**
 * For every switch, the neighbours on a shortest path to each host (by hops): `routes.get(switch).get(host)`. Throws
 * ERR_ROCE_INVALID_ARGUMENT when a host cannot be reached.
 */
export function shortestPaths(topology: Topology): Map<string, Map<string, string[]>> {
  const neighbours = new Map<string, string[]>();
  for (const name of [...topology.hosts, ...topology.switches]) neighbours.set(name, []);
  for (const { a, b } of topology.links) {
    neighbours.get(a)!.push(b);
    neighbours.get(b)!.push(a);
  }
  const routes = new Map<string, Map<string, string[]>>(topology.switches.map((name) => [name, new Map()]));
  for (const host of topology.hosts) {
    const hops = new Map<string, number>([[host, 0]]);
    const reached = [host];
    for (const node of reached) {
      if (node !== host && !routes.has(node)) continue; // Hosts forward nothing.
      for (const next of neighbours.get(node)!) {
        if (hops.has(next)) continue;
        hops.set(next, hops.get(node)! + 1);
        reached.push(next);
      }
    }
    for (const name of topology.switches) {
      const distance = hops.get(name);
      if (distance === undefined) {
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
