/**
 * N flows without end into one port, as in the fluid models of "ECN or Delay" (Zhu et al., CoNEXT'16, §3): DCQCN with
 * the parameters of SIGCOMM'15, on both RED ramps and both feedback delays; the same at 100 Gb/s; and PFC alone.
 */

import type { ScenarioFile } from '../scenario/schema.js';

/**
 * RED with the same slope: the ramp of the published figures, and the one that ends at 200 KB, which N >= 16 flows
 * overrun.
 */
const RAMPS = {
  long: { kind: 'red', kminBytes: 5_000, kmaxBytes: 2_000_000, pmax: 0.1 },
  short: { kind: 'red', kminBytes: 5_000, kmaxBytes: 200_000, pmax: 0.01 },
} as const;

/**
 * tau* of the fluid model, its only delay: from the mark through receiver and sender back to the queue, which then sees
 * the new rate.
 */
const LOOP_DELAYS_NS = { '4us': 4_000, '85us': 85_000 } as const;

/** What is sent twice on the way round, on the link: a packet of 1 KiB and a notification. */
const SENT_TWICE_BYTES = 1106 + 98;

function cableDelayNs(loop: keyof typeof LOOP_DELAYS_NS, rateBps: number): number {
  return Math.round((LOOP_DELAYS_NS[loop] - (2 * SENT_TWICE_BYTES * 8e9) / rateBps) / 4);
}

/** Frames that may wait at a port: 36 MB, which nothing here fills. */
const DEEP_QUEUE = { queuePackets: 32_768, bufferPackets: 65_536 } as const;

interface Senders {
  readonly hosts: number;
  readonly from: string;
  readonly to: string;
}

function senders(count: number): Senders {
  return { hosts: count + 1, from: count === 1 ? 'h0' : `h0..h${count - 1}`, to: `h${count}` };
}

function longFlows(
  flows: number,
  delay: keyof typeof LOOP_DELAYS_NS,
  ramp: keyof typeof RAMPS,
  isLongRun: boolean,
): ScenarioFile {
  const { hosts, from, to } = senders(flows);
  return {
    name: `dcqcn-n${flows}-${delay}${ramp === 'long' ? '' : '-short'}`,
    title: `DCQCN: ${flows} flows, feedback delay ${delay}, RED 5 to ${RAMPS[ramp].kmaxBytes / 1000} KB`,
    source: "CoNEXT'16 figures 4 and 5; parameters of SIGCOMM'15",
    duration: isLongRun ? '150ms' : '100ms',
    warmup: isLongRun ? '100ms' : '50ms',
    topology: { kind: 'star', hosts, rate: '40Gbps', delay: cableDelayNs(delay, 40e9) },
    nic: { cc: 'dcqcn', timeout: 14 },
    switch: { ...DEEP_QUEUE, ecn: RAMPS[ramp] },
    flows: [{ kind: 'flows', from, to }],
    assertions: [
      { name: 'the shares are fair', value: 'summary.jain', min: 0.9 },
      { name: 'nothing is lost', value: 'summary.droppedPackets', max: 0 },
    ],
  };
}

/** SIGCOMM'15 has no numbers for 100 Gb/s: R_AI and the ramp are scaled with the rate, as HPCC's simulator does. */
function fastFlows(flows: number): ScenarioFile {
  const { hosts, from, to } = senders(flows);
  return {
    name: `dcqcn-100g-n${flows}`,
    title: `DCQCN at 100 Gb/s: ${flows} flows, feedback delay 4us`,
    source:
      "parameters of SIGCOMM'15 scaled by the rate, RED of HPCC (SIGCOMM'19): 100 to 400 KB per 25 Gb/s up to 20 %",
    duration: '60ms',
    warmup: '30ms',
    topology: { kind: 'star', hosts, rate: '100Gbps', delay: cableDelayNs('4us', 100e9) },
    nic: { cc: { name: 'dcqcn', linkRateBps: '100Gbps', additiveIncreaseBps: '100Mbps' }, timeout: 14 },
    switch: { ...DEEP_QUEUE, ecn: { kind: 'red', kminBytes: 400_000, kmaxBytes: 1_600_000, pmax: 0.2 } },
    flows: [{ kind: 'flows', from, to }],
    assertions: [
      { name: 'the shares are fair', value: 'summary.jain', min: 0.9 },
      { name: 'the link is used', value: 'summary.efficiency', min: 0.9 },
      { name: 'nothing is lost', value: 'summary.droppedPackets', max: 0 },
    ],
  };
}

/** Buffer and threshold are those of the published comparison with ns-3. */
function pausesOnly(flows: number): ScenarioFile {
  const { hosts, from, to } = senders(flows);
  return {
    name: `pfc-n${flows}`,
    title: `PFC alone: ${flows} flows into one port, 4 MiB of memory, dynamic threshold 1/8`,
    source: 'thresholds: n equal ingress queues hold n*alpha*P/(1+n*alpha) together',
    duration: '10ms',
    warmup: '2ms',
    topology: { kind: 'star', hosts, rate: '40Gbps', delay: '1us' },
    nic: { cc: 'none', timeout: 14 },
    switch: { pfc: { priorities: [0] }, buffer: { totalBytes: 4_194_304, losslessAlpha: 0.125 } },
    flows: [{ kind: 'flows', from, to }],
    assertions: [
      { name: 'nothing is lost', value: 'summary.droppedPackets', max: 0 },
      { name: 'senders are paused', value: 'summary.pauseFrames', min: 1 },
      { name: 'the link is full', value: 'summary.efficiency', min: 0.98 },
      { name: 'the shares are fair', value: 'summary.jain', min: 0.99 },
    ],
  };
}

/** A PI controller instead of RED: the queue stays at its reference for any number of flows. */
function integralMarking(flows: number): ScenarioFile {
  const { hosts, from, to } = senders(flows);
  return {
    name: `dcqcn-pi-n${flows}`,
    title: `DCQCN with a PI controller at the switch: ${flows} flows, reference 200 KB`,
    source: "CoNEXT'16 figure 18; gains of the fluid model",
    duration: '400ms',
    warmup: '300ms',
    topology: { kind: 'star', hosts, rate: '40Gbps', delay: cableDelayNs('4us', 40e9) },
    nic: { cc: 'dcqcn', timeout: 14 },
    switch: {
      ...DEEP_QUEUE,
      ecn: { kind: 'pi', referenceBytes: 200_000, proportionalPerByte: 2e-8, integralPerByteSecond: 5e-7 },
    },
    flows: [{ kind: 'flows', from, to }],
    assertions: [
      { name: 'the queue stays at its reference', value: 'summary.queueMeanBytes', min: 150_000, max: 250_000 },
      { name: 'the shares are fair', value: 'summary.jain', min: 0.95 },
    ],
  };
}

const FLOW_COUNTS = [2, 10, 16, 64] as const;

/** Flows without end under DCQCN: both ramps, both delays, 100 Gb/s, PFC alone, PI marking. */
export const DCQCN_SCENARIOS: readonly ScenarioFile[] = [
  ...FLOW_COUNTS.flatMap((flows) =>
    (['4us', '85us'] as const).flatMap((delay) => [
      longFlows(flows, delay, 'long', flows === 2),
      longFlows(flows, delay, 'short', flows === 2),
    ]),
  ),
  ...FLOW_COUNTS.map(fastFlows),
  ...FLOW_COUNTS.map(pausesOnly),
  ...[10, 64].map(integralMarking),
];
