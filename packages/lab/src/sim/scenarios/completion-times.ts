/**
 * Flow completion times on a dumbbell: web-search flows from ten senders over one 10 Gb/s link to ten receivers ("ECN
 * or Delay", CoNEXT'16, figures 13 to 16). Load 1.0 is 8 Gb/s on that link; the scenarios are at 0.8.
 */

import type { ScenarioFile } from '../scenario/schema.js';

const TITLES = { dcqcn: 'DCQCN', timely: 'TIMELY', 'patched-timely': 'patched TIMELY' } as const;

/**
 * The publication does not say how slow TIMELY may become. Its cut has no bound but the floor: with the default of 10
 * Mb/s long flows starve after a burst and leave the link empty, with the fair share of ten senders the published tail
 * appears.
 */
const RATE_CONTROLS = {
  dcqcn: { name: 'dcqcn', linkRateBps: '10Gbps' },
  timely: { name: 'timely', minimumRateBps: '1Gbps' },
  'patched-timely': 'patched-timely',
} as const;

/** Load 1.0 of the experiment. */
const FULL_LOAD_BPS = 8e9;

function completionTimes(cc: keyof typeof TITLES): ScenarioFile {
  return {
    name: `fct-${cc}`,
    title: `Completion times of web-search flows at 80 % load: ${TITLES[cc]}`,
    source: "CoNEXT'16 §5; PFC on 9 MB of memory as in ns3-rdma",
    duration: '1s',
    topology: { kind: 'dumbbell', hosts: 20, rate: '10Gbps', delay: '1us' },
    nic: { cc: RATE_CONTROLS[cc], timeout: 16 },
    switch: {
      pfc: { priorities: [0] },
      buffer: { totalBytes: 9_437_184, losslessAlpha: 16 },
      ecn: { kind: 'red', kminBytes: 5000, kmaxBytes: 200_000, pmax: 0.01 },
    },
    flows: [{ kind: 'poisson', from: 'h0..h9', to: 'h10..h19', offered: 0.8 * FULL_LOAD_BPS }],
    assertions: [
      { name: 'no flow fails', value: 'summary.failedFlows', max: 0 },
      { name: 'nothing is lost', value: 'summary.droppedPackets', max: 0 },
    ],
  };
}

export const COMPLETION_SCENARIOS: readonly ScenarioFile[] = [
  completionTimes('dcqcn'),
  completionTimes('timely'),
  completionTimes('patched-timely'),
];
