import { RoceError } from 'rocev2/internal/core';
import { dumbbell, fatTree, leafSpine, pair, parkingLot, region, star, type Topology } from '../topology.js';
import type { Scenario } from './schema.js';

export function topologyOf(field: Scenario['topology']): Topology {
  const link = { rateBps: field.rate, delayNs: field.delay };
  const other = (rate: number | undefined, delay: number | undefined) => ({
    rateBps: rate ?? field.rate,
    delayNs: delay ?? field.delay,
  });
  switch (field.kind) {
    case 'pair':
      return pair(link);
    case 'star':
      return star(field.hosts, link);
    case 'dumbbell':
      return dumbbell(field.hosts, link, other(field.middleRate, field.middleDelay));
    case 'leaf-spine':
      return leafSpine(
        field.leaves,
        field.spines,
        field.hostsPerLeaf,
        link,
        other(field.uplinkRate, field.uplinkDelay),
      );
    case 'region':
      return region(field.hosts, link, other(field.longRate, field.longDelay));
    case 'fat-tree':
      return fatTree(field.k, link, other(field.uplinkRate, field.uplinkDelay));
    case 'parking-lot':
      return parkingLot(field.switches, field.hostsPerSwitch, link, other(field.middleRate, field.middleDelay));
    case 'links':
      return checked({
        hosts: field.hosts,
        switches: field.switches,
        links: field.links.map(({ a, b, rate, delay }) => ({ a, b, ...other(rate, delay) })),
      });
  }
}

function checked(topology: Topology): Topology {
  const { hosts, switches, links } = topology;
  const nodes = new Set([...hosts, ...switches]);
  if (nodes.size < hosts.length + switches.length) throw malformed('two nodes have one name');
  const pairs = new Set<string>();
  for (const { a, b } of links) {
    for (const end of [a, b])
      if (!nodes.has(end)) throw malformed(`the link ${a}-${b} ends at ${end}, which is not a node`);
    if (a === b) throw malformed(`the link ${a}-${b} leads back to where it begins`);
    const pairOf = [a, b].sort().join('-');
    if (pairs.has(pairOf))
      throw malformed(`there are two links between ${a} and ${b}: parallel links are not supported`);
    pairs.add(pairOf);
  }
  for (const host of hosts) {
    const ends = links.filter(({ a, b }) => a === host || b === host);
    if (ends.length !== 1) throw malformed(`${host} has ${ends.length} links: a host has one NIC, with one link`);
    const { a, b } = ends[0];
    if (!switches.includes(a === host ? b : a)) throw malformed(`the link ${a}-${b} has no switch at its end`);
  }
  return topology;
}

function malformed(what: string): RoceError {
  return new RoceError(
    'ERR_ROCE_MALFORMED',
    `topology: ${what}`,
    'packages/lab/docs/scenarios.md describes topologies',
  );
}
