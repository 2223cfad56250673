/**
 * TIMELY and patched TIMELY ("ECN or Delay", CoNEXT'16, §4): two flows of TIMELY keep their initial difference, patched
 * TIMELY converges. In bursts, small ones happen to equalise shares, large ones collide. With one sample a round trip,
 * as in HPCC's simulator, shares converge for any number of flows.
 */

import type { ScenarioFile } from '../scenario/schema.js';

type Assertion = NonNullable<ScenarioFile['assertions']>[number];

function shares(
  name: string,
  title: string,
  cc: { name: 'timely' | 'patched-timely'; [parameter: string]: string },
  assertion: Assertion,
): ScenarioFile {
  const flow = (from: string, initialRateBps: string) =>
    ({ kind: 'flows', from, to: 'h2', cc: { ...cc, initialRateBps } }) as const;
  return {
    name,
    title: `${title}: two flows that begin with 7 and 3 Gb/s`,
    source: "CoNEXT'16 figures 9, 10 and 12",
    duration: '400ms',
    warmup: '200ms',
    topology: { kind: 'star', hosts: 3, rate: '10Gbps', delay: '1us' },
    nic: { timeout: 14 },
    switch: { queuePackets: 32_768, bufferPackets: 65_536 },
    flows: [flow('h0', '7Gbps'), flow('h1', '3Gbps')],
    assertions: [assertion],
  };
}

function manyFlows(flows: number): ScenarioFile {
  return {
    name: `timely-n${flows}`,
    title: `TIMELY, a sample each round trip: ${flows} flows into 10 Gb/s`,
    source: "SIGCOMM'15, algorithm 1; compared with HPCC's ns-3 simulator",
    duration: '200ms',
    warmup: '100ms',
    topology: { kind: 'star', hosts: flows + 1, rate: '10Gbps', delay: '1us' },
    nic: { cc: 'timely', timeout: 14 },
    switch: { queuePackets: 32_768, bufferPackets: 65_536 },
    flows: [{ kind: 'flows', from: `h0..h${flows - 1}`, to: `h${flows}` }],
    assertions: [
      { name: 'the shares meet', value: 'summary.jain', min: 0.98 },
      { name: 'the queue stays about Tlow', value: 'summary.queueP99Bytes', min: 50_000, max: 90_000 },
    ],
  };
}

export const TIMELY_SCENARIOS: readonly ScenarioFile[] = [
  ...[2, 10, 16].map(manyFlows),
  shares(
    'timely-round-trips',
    'TIMELY, a sample each round trip',
    { name: 'timely' },
    { name: 'the shares meet', value: 'summary.jain', min: 0.99 },
  ),
  shares(
    'timely-shares',
    'TIMELY, a sample every 64 KB',
    { name: 'timely', segmentBytes: '64KB' },
    { name: 'the shares stay apart', value: 'summary.jain', max: 0.8 },
  ),
  shares(
    'timely-bursts-16k',
    'TIMELY in bursts of 16 KB',
    { name: 'timely', segmentBytes: '16KB', burstBytes: '16KB' },
    { name: 'the shares drift together', value: 'summary.jain', min: 0.95 },
  ),
  shares(
    'timely-bursts-64k',
    'TIMELY in bursts of 64 KB',
    { name: 'timely', segmentBytes: '64KB', burstBytes: '64KB' },
    { name: 'the bursts collide and the rates collapse', value: 'summary.efficiency', max: 0.5 },
  ),
  shares(
    'patched-timely-shares',
    'Patched TIMELY',
    { name: 'patched-timely', segmentBytes: '16KB' },
    { name: 'the shares meet', value: 'summary.jain', min: 0.99 },
  ),
];
