/**
 * What the round trip alone cannot tell ("ECN or Delay", CoNEXT'16, §4): two flows of TIMELY keep or enlarge the difference they began with, patched
 * TIMELY brings them together. Sent in bursts, TIMELY hears its own noise: small bursts happen to make shares equal, large ones collide.
 */

import type { ScenarioFile } from '../scenario/schema.js';

type Assertion = NonNullable<ScenarioFile['assertions']>[number];

/** Two flows into one 10 Gb/s port that begin with 7 and 3 Gb/s. */
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

/** Shares under TIMELY and patched TIMELY, packet by packet and in bursts. */
export const TIMELY_SCENARIOS: readonly ScenarioFile[] = [
  shares(
    'timely-shares',
    'TIMELY',
    { name: 'timely' },
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
    { name: 'timely', burstBytes: '64KB' },
    { name: 'the bursts collide and the rates collapse', value: 'summary.efficiency', max: 0.5 },
  ),
  shares(
    'patched-timely-shares',
    'Patched TIMELY',
    { name: 'patched-timely', segmentBytes: '16KB' },
    { name: 'the shares meet', value: 'summary.jain', min: 0.99 },
  ),
];
