/** Scenarios of Azure's deployment (Bai et al., NSDI'23). */

import type { ScenarioFile } from '../scenario/schema.js';

const RED = { kind: 'red', kminBytes: 5_000, kmaxBytes: 200_000, pmax: 0.01 } as const;
/** Every packet after 100 KB is marked, so that marks come in bunches. */
const STEP = { kind: 'red', kminBytes: 100_000, kmaxBytes: 100_001, pmax: 1 } as const;
const DEEP_QUEUE = { queuePackets: 32_768, bufferPackets: 65_536 } as const;

type Assertion = NonNullable<ScenarioFile['assertions']>[number];
type Generation = 'gen1' | 'gen2' | 'gen2-fixed';

function preset(generation: Generation) {
  return { name: 'dcqcn', preset: `azure-${generation}` } as const;
}

/** Gen1 NICs keep the contexts of few queue pairs at hand; their number, and the cost of a miss, are not published. */
const GEN1_PIPELINE = { contexts: 4, hit: '50ns', miss: '400ns', buffer: '512KiB' } as const;

function generations(sender: Generation, receiver: Generation, ...expected: readonly Assertion[]): ScenarioFile {
  return {
    name: `${sender}-to-${receiver}`,
    title: `Eight flows from ${sender} NICs to one ${receiver} NIC`,
    source: "NSDI'23 §6.1",
    duration: '40ms',
    warmup: '20ms',
    topology: { kind: 'star', hosts: 9, rate: '40Gbps', delay: '10us' },
    nic: { timeout: 14 },
    switch: { ecn: STEP, pfc: { priorities: [0] }, buffer: { totalBytes: 36_000_000, losslessAlpha: 8 } },
    flows: [{ kind: 'flows', from: 'h0..h7', to: 'h8', cc: preset(sender), sinkCc: preset(receiver) }],
    ...(receiver === 'gen1' && { pipelines: [{ hosts: 'h8', ...GEN1_PIPELINE }] }),
    assertions: [...expected, { name: 'nothing is lost', value: 'summary.droppedPackets', max: 0 }],
  };
}

const WORKS: Assertion = { name: 'the link is used', value: 'summary.efficiency', min: 0.9 };

type Marking = NonNullable<NonNullable<ScenarioFile['switch']>['ecn']>;

/** Hosts h0 and h1 are 2 ms of round trip away from h3, h2 is next to h3. */
function lengths(
  name: string,
  title: string,
  from: string | readonly string[],
  ecn: Marking,
  assertion: Assertion,
): ScenarioFile {
  return {
    name,
    title,
    source: "NSDI'23 §5 and §7",
    duration: '800ms',
    warmup: '400ms',
    topology: { kind: 'region', hosts: 4, rate: '10Gbps', delay: '500ns', longDelay: '998us' },
    nic: { cc: { name: 'dcqcn', linkRateBps: '10Gbps' }, timeout: 16 },
    switch: { ...DEEP_QUEUE, ecn },
    flows: [
      { kind: 'flows', from: typeof from === 'string' ? from : [...from], to: 'h3', message: '1MiB', outstanding: 16 },
    ],
    assertions: [assertion],
  };
}

function thresholds(name: string, title: string, alpha: number, assertions: ScenarioFile['assertions']): ScenarioFile {
  return {
    name,
    title,
    source: "SIGCOMM'15 §4: ECN must come before PFC",
    duration: '30ms',
    warmup: '10ms',
    topology: { kind: 'star', hosts: 9, rate: '40Gbps', delay: '1us' },
    nic: { cc: 'dcqcn', timeout: 14 },
    switch: { ecn: RED, pfc: { priorities: [0] }, buffer: { totalBytes: 12_000_000, losslessAlpha: alpha } },
    flows: [{ kind: 'flows', from: 'h0..h7', to: 'h8' }],
    assertions,
  };
}

function pauseStorm(hasWatchdog: boolean): ScenarioFile {
  const rescued = 'queues[s1>h5].utilization';
  return {
    name: hasWatchdog ? 'pause-storm-watchdog' : 'pause-storm',
    title: `A host storms with pause frames, ${hasWatchdog ? 'and the watchdog ends it' : 'and there is no watchdog'}`,
    source: "NSDI'23 §4.2; times a hundredth of SONiC's",
    duration: '60ms',
    warmup: '30ms',
    topology: { kind: 'dumbbell', hosts: 8, rate: '40Gbps', delay: '1us' },
    nic: { timeout: 8 },
    switch: {
      pfc: {
        priorities: [0],
        ...(hasWatchdog && { watchdog: { detectNs: 2e6, restoreNs: 2e6, pollNs: 1e6 } }),
      },
      buffer: { totalBytes: 4_194_304 },
    },
    flows: [
      { kind: 'flows', from: 'h0', to: 'h4' },
      { kind: 'flows', from: 'h1..h2', to: 'h5' },
    ],
    happenings: [{ do: 'storm', at: '5ms', host: 'h4' }],
    assertions: [
      hasWatchdog
        ? { name: 'the others have their link', value: rescued, min: 0.95 }
        : { name: 'the others are also stalled', value: rescued, max: 0.01 },
    ],
  };
}

/** All ports at once fill their ingress queues: together they need more headroom than there is, one burst does not. */
function headroom(
  name: string,
  title: string,
  oversubscription: number,
  assertions: ScenarioFile['assertions'],
): ScenarioFile {
  return {
    name,
    title,
    source: "NSDI'23 §4.1: the headroom pool is over-subscribed",
    duration: '10ms',
    topology: { kind: 'star', hosts: 17, rate: '40Gbps', delay: '1us' },
    nic: { timeout: 14 },
    switch: {
      pfc: { priorities: [0] },
      buffer: { totalBytes: 6_000_000, headroomOversubscription: oversubscription },
    },
    flows: [{ kind: 'flows', from: 'h0..h15', to: 'h16', bytes: '1MiB' }],
    assertions,
  };
}

export const AZURE_SCENARIOS: readonly ScenarioFile[] = [
  generations('gen1', 'gen1', WORKS),
  generations('gen2', 'gen2', WORKS),
  generations('gen1', 'gen2', { name: 'the senders cut far too often', value: 'summary.efficiency', max: 0.7 }),
  generations('gen1', 'gen2-fixed', WORKS),
  generations(
    'gen2',
    'gen1',
    { name: 'the receiver cannot keep up with interleaved packets', value: 'summary.efficiency', max: 0.6 },
    { name: 'and asks for pauses', value: 'queues[s0>h8].receivedPauseFrames', min: 1 },
  ),
  generations('gen2-fixed', 'gen1', WORKS),
  generations('gen2-fixed', 'gen2-fixed', WORKS),
  lengths('rtt-fairness', 'DCQCN: flows of 4 us and of 2 ms round trip share one port', ['h0', 'h2'], RED, {
    name: 'length does not matter',
    value: 'summary.jain',
    min: 0.95,
  }),
  lengths('rtt-dense-marking', 'DCQCN: two flows of 2 ms round trip, RED 5 to 200 KB', 'h0..h1', RED, {
    name: 'the long loop starves the link',
    value: 'summary.efficiency',
    max: 0.8,
  }),
  lengths(
    'rtt-sparse-marking',
    'DCQCN: two flows of 2 ms round trip, RED 1 to 10 MB up to 1 %',
    'h0..h1',
    { kind: 'red', kminBytes: 1_000_000, kmaxBytes: 10_000_000, pmax: 0.01 },
    { name: 'the link is used', value: 'summary.efficiency', min: 0.95 },
  ),
  thresholds('ecn-before-pfc', 'Eight flows, thresholds in the right order: marks, no pauses', 1, [
    { name: 'marks come', value: 'summary.markedPackets', min: 1 },
    { name: 'pauses do not', value: 'summary.pauseFrames', max: 0 },
    { name: 'nothing is lost', value: 'summary.droppedPackets', max: 0 },
  ]),
  thresholds('pfc-before-ecn', 'Eight flows, thresholds in the wrong order: pauses before marks', 1 / 1024, [
    { name: 'pauses come', value: 'summary.pauseFrames', min: 1 },
    { name: 'nothing is lost', value: 'summary.droppedPackets', max: 0 },
  ]),
  pauseStorm(false),
  pauseStorm(true),
  headroom('headroom-oversubscribed', 'Incast of 16 on headroom that is promised twice', 2, [
    { name: 'nothing is lost', value: 'summary.droppedPackets', max: 0 },
    { name: 'headroom is needed', value: 'buffers[s0].headroomMaxBytes', min: 1 },
  ]),
  headroom('headroom-exhausted', 'Incast of 16 on headroom that is promised a hundred times', 100, [
    { name: 'packets are lost', value: 'summary.droppedPackets', min: 1 },
  ]),
];
