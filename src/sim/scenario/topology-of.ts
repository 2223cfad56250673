/** The `topology` field of a scenario as a topology. */

import { dumbbell, leafSpine, pair, region, star, type Topology } from '../topology.js';
import type { Scenario } from './schema.js';

/** Builds the topology a scenario names; links between switches take the scenario's rate and delay unless it gives others. */
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
  }
}
