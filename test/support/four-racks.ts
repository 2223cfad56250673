/** Four racks under two spines with DCQCN and pauses: what scenarios of divided runs have in common. */

import type { ScenarioFile } from '../../packages/lab/src/sim/scenario/schema.js';

/** A scenario that lacks its duration and its flows. */
export function fourRacks(hostsPerLeaf: number): Omit<ScenarioFile, 'duration' | 'flows'> {
  return {
    name: 'fabric',
    sample: '10us',
    topology: { kind: 'leaf-spine', leaves: 4, spines: 2, hostsPerLeaf, rate: '40Gbps' },
    payload: 'virtual',
    nic: { cc: { name: 'dcqcn', linkRateBps: '40Gbps' }, timeout: 14 },
    switch: {
      pfc: { priorities: [0] },
      buffer: { totalBytes: '2MB' },
      ecn: { kind: 'red', kminBytes: 4_000, kmaxBytes: 40_000, pmax: 0.2 },
    },
  };
}
