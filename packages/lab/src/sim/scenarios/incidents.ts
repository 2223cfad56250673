/**
 * Scenarios of PFC incidents in Microsoft's data centres (Guo et al., SIGCOMM'16, §4 and §6), and completion times
 * under PFC, DCQCN and tuned DCQCN (Bai et al., NSDI'23, figure 11).
 */

import type { ScenarioFile } from '../scenario/schema.js';

const LINK = { rate: '40Gbps', delay: '1us' } as const;
const RED = { kind: 'red', kminBytes: 5_000, kmaxBytes: 200_000, pmax: 0.01 } as const;

type Assertion = NonNullable<ScenarioFile['assertions']>[number];

function names(letter: string, count: number): string[] {
  return Array.from({ length: count }, (_, i) => `${letter}${i}`);
}

const RING = 5;
const WATCHDOG = { detectNs: 2e6, restoreNs: 2e6, pollNs: 1e6 } as const;

/**
 * Five switches in a ring with two hosts each. A host of each sends to one two switches on, so that every link of the
 * ring waits for the next one. Without the last link the same flows have no circle to wait in.
 */
function deadlock(
  name: string,
  title: string,
  { isOpen = false, hasWatchdog = false },
  assertion: Assertion,
): ScenarioFile {
  const hosts = names('h', 2 * RING);
  const switches = names('s', RING);
  return {
    name,
    title,
    source: "SIGCOMM'16 §4.2; there the circle came from packets to hosts whose port was no longer known",
    duration: '20ms',
    warmup: '10ms',
    topology: {
      kind: 'links',
      ...LINK,
      hosts,
      switches,
      links: [
        ...hosts.map((host, i) => ({ a: host, b: switches[Math.floor(i / 2)] })),
        ...switches.slice(isOpen ? 1 : 0).map((_, i) => ({ a: switches[i], b: switches[(i + 1) % RING] })),
      ],
    },
    nic: { timeout: 14 },
    switch: {
      pfc: { priorities: [0], ...(hasWatchdog && { watchdog: WATCHDOG }) },
      buffer: { totalBytes: 2_000_000 },
    },
    flows: switches.map((_, i) => ({ kind: 'flows', from: `h${2 * i}`, to: `h${2 * ((i + 2) % RING) + 1}` })),
    assertions: [assertion],
  };
}

const HALF_LINK = { name: 'fixed', rateBps: '19Gbps' } as const;

/**
 * Two hosts burst to h4, whose NIC has the context of one queue pair or of 64; small messages pass the same switches to
 * another host.
 */
function slowReceiver(
  name: string,
  title: string,
  contexts: number,
  alpha: number,
  assertions: Assertion[],
): ScenarioFile {
  return {
    name,
    title,
    source: "SIGCOMM'16 §4.4: small pages do not fit into the NIC's cache; the numbers of cache and misses are ours",
    duration: '10ms',
    topology: { kind: 'dumbbell', hosts: 8, ...LINK, middleRate: '100Gbps' },
    nic: { timeout: 14 },
    switch: { pfc: { priorities: [0] }, buffer: { totalBytes: 12_000_000, losslessAlpha: alpha } },
    pipelines: [{ hosts: 'h4', contexts, hit: '50ns', miss: '400ns', buffer: '64KiB' }],
    flows: [
      {
        kind: 'incast',
        from: 'h0..h1',
        to: 'h4',
        fanIn: 2,
        bytes: '256KB',
        every: '400us',
        until: '9ms',
        cc: HALF_LINK,
      },
      { kind: 'flows', from: 'h2', to: 'h5', bytes: '16KB', each: 90, stagger: '97us' },
    ],
    assertions,
  };
}

function threshold(name: string, title: string, alpha: number, assertion: Assertion): ScenarioFile {
  return {
    name,
    title,
    source: "SIGCOMM'16 §6.2: alpha was 1/64 on new switches, and 1/16 on the old ones",
    duration: '20ms',
    topology: { kind: 'dumbbell', hosts: 24, ...LINK, middleRate: '160Gbps' },
    nic: { timeout: 14, cc: 'dcqcn' },
    switch: { ecn: RED, pfc: { priorities: [0] }, buffer: { totalBytes: 12_000_000, losslessAlpha: alpha } },
    flows: [
      { kind: 'incast', from: 'h0..h11', to: 'h12..h23', fanIn: 8, bytes: '128KB', every: '250us', until: '16ms' },
      { kind: 'flows', from: 'h11', to: 'h23', bytes: '16KB', each: 100, stagger: '160us' },
    ],
    assertions: [assertion, { name: 'nothing is lost', value: 'summary.droppedPackets', max: 0 }],
  };
}

const TORS = 3;
const SERVERS = 8;
const LEAVES = 4;

/**
 * Two podsets of three racks with eight servers each, four leaves a podset, and two spines above each leaf: 24
 * connections for each link between leaves and spines, as published, and a twelfth of its racks.
 */
function clos(): ScenarioFile {
  const half = TORS * SERVERS;
  const [hosts, tors, leaves] = [names('h', 2 * half), names('t', 2 * TORS), names('l', 2 * LEAVES)];
  return {
    name: 'clos',
    title: 'A Clos network full of long flows, with pauses alone',
    source: "SIGCOMM'16 §5.4, at a smaller size",
    duration: '3ms',
    warmup: '1ms',
    topology: {
      kind: 'links',
      ...LINK,
      hosts,
      switches: [...tors, ...leaves, ...names('p', 2 * LEAVES)],
      links: [
        ...hosts.map((host, i) => ({ a: host, b: tors[Math.floor(i / SERVERS)] })),
        ...tors.flatMap((tor, i) =>
          leaves.slice(i < TORS ? 0 : LEAVES, i < TORS ? LEAVES : 2 * LEAVES).map((leaf) => ({ a: tor, b: leaf })),
        ),
        ...leaves.flatMap((leaf, i) => [0, 1].map((k) => ({ a: leaf, b: `p${2 * (i % LEAVES) + k}` }))),
      ],
    },
    nic: { timeout: 14 },
    switch: { pfc: { priorities: [0] }, buffer: { totalBytes: 9_000_000, losslessAlpha: 1 / 16 } },
    flows: hosts.map((host, i) => ({ kind: 'flows', from: host, to: hosts[(i + half) % (2 * half)], each: 8 })),
    assertions: [{ name: 'nothing is lost', value: 'summary.droppedPackets', max: 0 }],
  };
}

/**
 * A host whose loopback traffic takes half of the lanes between NIC and memory: what comes from the network is taken in
 * at half of its rate. The NIC does not mark: it requests pauses, and only packets that wait in the switch are marked.
 * No pause is long enough for the watchdog.
 */
function loopback(name: string, title: string, perPacket: string, assertions: Assertion[]): ScenarioFile {
  return {
    name,
    title,
    source: "NSDI'23: loopback and remote traffic at once are 2:1 for the lanes of the NIC",
    duration: '40ms',
    warmup: '20ms',
    topology: { kind: 'star', hosts: 3, ...LINK },
    nic: { timeout: 14, cc: 'dcqcn' },
    switch: {
      ecn: RED,
      pfc: { priorities: [0], watchdog: WATCHDOG },
      buffer: { totalBytes: 4_194_304, losslessAlpha: 1 / 16 },
    },
    pipelines: [{ hosts: 'h2', contexts: 64, hit: perPacket, miss: perPacket }],
    flows: [{ kind: 'flows', from: 'h0', to: 'h2' }],
    assertions: [...assertions, { name: 'nothing is lost', value: 'summary.droppedPackets', max: 0 }],
  };
}

/**
 * A SecTAG of 16 bytes, with the identifier of the channel, and an integrity check value of 16 (IEEE 802.1AE clause 9).
 */
export const MACSEC_BYTES = 32;

function macsec(): ScenarioFile {
  return {
    name: 'macsec',
    title: 'A link with MACsec: each frame is 32 bytes longer',
    source: "IEEE 802.1AE; NSDI'23 has it between regional switches",
    duration: '500us',
    warmup: '100us',
    topology: { kind: 'pair', ...LINK, extra: MACSEC_BYTES },
    nic: { mtu: 4096, timeout: 14 },
    flows: [{ kind: 'flows', from: 'h0', to: 'h1' }],
    assertions: [
      { name: 'a packet of 4 KiB loses less than a hundredth', value: 'summary.efficiency', min: 0.99, max: 0.995 },
    ],
  };
}

const SERVICE_HOSTS = 33;

/**
 * A service whose servers answer together, some 350 Mb/s a server as published: eight of them send 16 KB each to one
 * that asked, and now and then 32 do. The memory that a queue may take, 185 KB, holds the former and not the latter.
 */
function serviceLatency(): ScenarioFile {
  const all = `h0..h${SERVICE_HOSTS - 1}`;
  const answers = { kind: 'incast', from: all, to: all, bytes: '16KB', until: '20ms' } as const;
  return {
    name: 'service-latency',
    title: 'Messages of a service that come together, seldom too many for a queue',
    source: "SIGCOMM'16 figure 6 (latency of TCP and RDMA); sizes and times of the traffic are ours",
    duration: '100ms',
    topology: { kind: 'star', hosts: SERVICE_HOSTS, ...LINK },
    nic: { timeout: 14, cc: 'dcqcn' },
    switch: {
      ecn: RED,
      pfc: { priorities: [0] },
      buffer: { totalBytes: 12_000_000, losslessAlpha: 1 / 64, lossyAlpha: 1 / 64 },
    },
    flows: [
      { ...answers, fanIn: 8, every: '100us' },
      { ...answers, fanIn: SERVICE_HOSTS - 1, every: '4ms', start: '50us' },
    ],
    assertions: [
      { name: 'nothing is lost', value: 'summary.droppedPackets', max: 0 },
      { name: 'no message waits for a timer', value: 'summary.completions.p99Ns', max: 200_000 },
    ],
  };
}

function completionTimes(
  name: string,
  title: string,
  nic: NonNullable<ScenarioFile['nic']>,
  ecn: NonNullable<NonNullable<ScenarioFile['switch']>['ecn']> | undefined,
): ScenarioFile {
  return {
    name,
    title: `Web-search flows and incasts of eight at 50 % load: ${title}`,
    source: "NSDI'23 §7, figure 11: its sizes and thresholds are not published",
    duration: '30ms',
    topology: { kind: 'leaf-spine', leaves: 2, spines: 2, hostsPerLeaf: 8, ...LINK },
    nic: { timeout: 14, ...nic },
    switch: {
      pfc: { priorities: [0] },
      buffer: { totalBytes: 9_437_184, losslessAlpha: 0.125 },
      ...(ecn !== undefined && { ecn }),
    },
    flows: [
      { kind: 'poisson', from: 'h0..h15', to: 'h0..h15', load: 0.5, until: '10ms' },
      { kind: 'incast', from: 'h0..h15', to: 'h0..h15', fanIn: 8, bytes: '64KB', every: '400us', until: '10ms' },
    ],
    assertions: [{ name: 'nothing is lost', value: 'summary.droppedPackets', max: 0 }],
  };
}

const STANDS: Assertion = { name: 'all flows are stalled', value: 'summary.goodputBps', max: 0 };

export const INCIDENT_SCENARIOS: readonly ScenarioFile[] = [
  deadlock('deadlock', 'Five switches in a ring wait for each other indefinitely', {}, STANDS),
  deadlock(
    'deadlock-no-circle',
    'The same flows without the link that closes the ring',
    { isOpen: true },
    { name: 'all flows continue', value: 'summary.minGoodputBps', min: 10e9 },
  ),
  deadlock(
    'deadlock-watchdog',
    'The same ring with a watchdog: the ring soon closes again',
    { hasWatchdog: true },
    { name: 'packets are dropped', value: 'summary.droppedPackets', min: 1 },
  ),
  slowReceiver('slow-receiver', 'A slow receiver: its pauses spread to the other switch', 1, 1 / 64, [
    { name: 'its switch is paused', value: 'queues[s1>h4].receivedPauseFrames', min: 1 },
    { name: 'and pauses the next one', value: 'queues[s0>s1].receivedPauseFrames', min: 1 },
  ]),
  slowReceiver('slow-receiver-buffer', 'A slow receiver, and a switch that may take more of its memory', 1, 1 / 4, [
    { name: 'its switch is paused', value: 'queues[s1>h4].receivedPauseFrames', min: 1 },
    { name: 'and pauses no port', value: 'queues[s0>s1].receivedPauseFrames', max: 0 },
  ]),
  slowReceiver('slow-receiver-pages', 'The same receiver with larger pages: its cache has all of them', 64, 1 / 64, [
    { name: 'no port is paused', value: 'summary.pauseFrames', max: 0 },
  ]),
  threshold('alpha-1-16', 'Incasts of eight and small messages: threshold 1/16', 1 / 16, {
    name: 'pauses are few',
    value: 'summary.pauseFrames',
    max: 400,
  }),
  threshold('alpha-1-64', 'Incasts of eight and small messages: threshold 1/64', 1 / 64, {
    name: 'pauses are many',
    value: 'summary.pauseFrames',
    min: 800,
  }),
  clos(),
  // A packet of 1106 bytes takes 221 ns at 40 Gb/s.
  loopback(
    'loopback',
    'Loopback takes half of the lanes of a NIC: pauses come and go, and DCQCN does not end them',
    '442ns',
    [
      { name: 'the switch is paused', value: 'queues[s0>h2].receivedPauseFrames', min: 10 },
      { name: 'half of the link is used', value: 'summary.efficiency', min: 0.47, max: 0.53 },
    ],
  ),
  loopback('loopback-off', 'The same without loopback', '50ns', [
    { name: 'no port is paused', value: 'summary.pauseFrames', max: 0 },
    { name: 'the link is used', value: 'summary.efficiency', min: 0.97 },
  ]),
  macsec(),
  serviceLatency(),
  completionTimes('p99-pfc', 'pauses alone', { cc: 'none' }, undefined),
  completionTimes('p99-dcqcn', 'DCQCN', { cc: 'dcqcn' }, RED),
  completionTimes(
    'p99-tuned',
    'DCQCN with sparse marks and larger steps',
    { cc: { name: 'dcqcn', additiveIncreaseBps: '200Mbps', hyperIncreaseBps: '1Gbps' } },
    { kind: 'red', kminBytes: 200_000, kmaxBytes: 800_000, pmax: 0.02 },
  ),
];
