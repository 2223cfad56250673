import { parsedText, plainWords, rate, size, time } from '@rocev2/command/schema';
import { RoceError } from 'rocev2/internal/core';
import { parseFaultRules } from 'rocev2/internal/faults';
import { PATH_MTUS } from 'rocev2/internal/packet';
import { STANDARD_RECOVERY } from 'rocev2/internal/retransmit';
import { z } from 'zod';
import { switchConfigSchema } from '../../schema/switch-config-schema.js';
import { POSTED_AHEAD_MAX } from './posted-ahead.js';
import { rateControl, recovery } from './schemes.js';

/** Points of a series: a finer `sample` adds nothing, and fills the memory. */
const SERIES_POINTS_MAX = 1e6;

const HOSTS_MAX = 1024;
const TOO_MANY_HOSTS = `at most ${HOSTS_MAX} hosts are simulated`;
const hostCount = z.number().int().min(2).max(HOSTS_MAX, TOO_MANY_HOSTS);
const link = {
  rate: rate.default(40e9),
  delay: time.default(1_000),
  /**
   * Bytes of each frame on every link besides its own and those of Ethernet: 32 for MACsec, none by default. What
   * `efficiency` and slowdowns are shares of has none.
   */
  extra: z.number().int().min(0).max(256).exactOptional(),
};

const nodeName = z.string().regex(/^[A-Za-z]\w*$/, 'a name is a letter, then letters, digits and underscores');

const topology = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('pair'), ...link }),
  z.strictObject({ kind: z.literal('star'), hosts: hostCount, ...link }),
  z.strictObject({
    kind: z.literal('dumbbell'),
    hosts: hostCount,
    ...link,
    middleRate: rate.exactOptional(),
    middleDelay: time.exactOptional(),
  }),
  z.strictObject({
    kind: z.literal('leaf-spine'),
    leaves: z.number().int().min(1).max(64),
    spines: z.number().int().min(1).max(64),
    hostsPerLeaf: z.number().int().min(1).max(64),
    ...link,
    uplinkRate: rate.exactOptional(),
    uplinkDelay: time.exactOptional(),
  }),
  z.strictObject({
    kind: z.literal('region'),
    hosts: hostCount,
    ...link,
    longRate: rate.exactOptional(),
    longDelay: time.default(1_000_000),
  }),
  z.strictObject({
    kind: z.literal('fat-tree'),
    k: z.number().int().min(2).max(16).multipleOf(2, 'k is even'),
    ...link,
    uplinkRate: rate.exactOptional(),
    uplinkDelay: time.exactOptional(),
  }),
  z.strictObject({
    kind: z.literal('parking-lot'),
    switches: z.number().int().min(2).max(64),
    hostsPerSwitch: z.number().int().min(1).max(64).default(2),
    ...link,
    middleRate: rate.exactOptional(),
    middleDelay: time.exactOptional(),
  }),
  z.strictObject({
    kind: z.literal('links'),
    ...link,
    hosts: z.array(nodeName).min(2).max(HOSTS_MAX, TOO_MANY_HOSTS),
    switches: z.array(nodeName).min(1).max(1024),
    links: z
      .array(z.strictObject({ a: nodeName, b: nodeName, rate: rate.exactOptional(), delay: time.exactOptional() }))
      .min(1),
  }),
]);

const hostText = z.string().regex(/^[A-Za-z]\w*(\.\.[A-Za-z]\w*)?$/, 'write a host as h0, several as h0..h9');
const hosts = z.union([hostText, z.array(hostText).min(1)]);

const OPS = ['write', 'send', 'read'] as const;

const flowCommon = {
  from: hosts,
  to: hosts,
  op: z.enum(OPS).default('write'),
  message: size.default(65_536),
  start: time.default(0),
  cc: rateControl.exactOptional(),
  sinkCc: rateControl.exactOptional(),
};

/**
 * Without it there are always more than `nic.inflight` packets of them, so that only the NIC's window and the rate
 * control limit a flow; see `postedAhead`.
 */
const outstanding = z.number().int().min(1).max(POSTED_AHEAD_MAX).exactOptional();

const sizes = z.union([
  z.enum(['web-search', 'pfabric-web-search', 'fb-hadoop', 'ali-storage']),
  z
    .array(z.tuple([size, z.number().min(0).max(100)]))
    .min(2)
    .refine((points) => points[0][1] === 0 && points[points.length - 1][1] === 100, 'sizes go from 0 to 100 percent')
    .refine(isAscending, 'bytes and percents ascend'),
]);

function isAscending(points: ReadonlyArray<readonly [bytes: number, percent: number]>): boolean {
  return points.every(([bytes, percent], i) => i === 0 || (bytes > points[i - 1][0] && percent > points[i - 1][1]));
}

const workload = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('flows'),
    ...flowCommon,
    bytes: size.exactOptional(),
    each: z.number().int().min(1).max(1024).default(1),
    stagger: time.default(0),
    outstanding,
  }),
  z
    .strictObject({
      kind: z.literal('poisson'),
      ...flowCommon,
      message: size.default(2 ** 20),
      sizes: sizes.default('web-search'),
      offered: rate.exactOptional(),
      load: z.number().positive().max(4).exactOptional(),
      until: time.exactOptional(),
      outstanding,
    })
    .refine(({ offered, load }) => (offered === undefined) !== (load === undefined), 'give either offered or load'),
  z.strictObject({
    kind: z.literal('incast'),
    ...flowCommon,
    fanIn: z.number().int().min(1).max(1023),
    bytes: size,
    every: time.refine((ns) => ns > 0, 'time passes between two incasts'),
    until: time.exactOptional(),
    outstanding,
  }),
  z.strictObject({
    kind: z.literal('list'),
    op: flowCommon.op,
    message: size.default(2 ** 20),
    cc: flowCommon.cc,
    sinkCc: flowCommon.sinkCc,
    outstanding,
    flows: z
      .array(
        z.strictObject({
          from: nodeName,
          to: nodeName,
          bytes: size.refine((n) => n > 0, 'a flow has a byte'),
          start: time.default(0),
        }),
      )
      .min(1),
  }),
]);

const faultRules = parsedText((text) => {
  parseFaultRules(text);
  return text;
});

const nic = z.strictObject({
  mtu: z.literal([...PATH_MTUS], { error: `the path MTU is one of ${PATH_MTUS.join(', ')}` }).default(1024),
  recovery: recovery.prefault(STANDARD_RECOVERY),
  inflight: z.number().int().min(2).default(16_384),
  timeout: z.number().int().min(1).max(31).default(10),
  /** Times that unanswered packets are sent again before the flow fails. */
  retries: z.number().int().min(0).max(7).default(7),
  /** Of all data packets, from 0 to 63; switches map it to a priority. */
  dscp: z.number().int().min(0).max(63).default(0),
  cc: rateControl.prefault('none'),
});

const priority = z.number().int().min(0).max(7);
const egress = { at: time, switch: z.string(), port: z.string(), priority: priority.exactOptional() };

const outage = { at: time, what: z.string(), reroute: time.default(0) };

const happening = z.discriminatedUnion('do', [
  z.strictObject({ do: z.literal('block'), ...egress }),
  z.strictObject({ do: z.literal('unblock'), ...egress }),
  z.strictObject({
    do: z.literal('storm'),
    at: time,
    host: z.string(),
    priority: priority.default(0),
    until: time.exactOptional(),
  }),
  z.strictObject({ do: z.literal('fail'), ...outage }),
  z.strictObject({ do: z.literal('repair'), ...outage }),
]);

const pipeline = z.strictObject({
  hosts,
  contexts: z.number().int().min(1),
  hit: time,
  miss: time,
  buffer: size.default(262_144),
  priority: priority.default(0),
});

const assertion = z
  .strictObject({
    name: z.string(),
    value: z.string(),
    min: z.number().exactOptional(),
    max: z.number().exactOptional(),
  })
  .refine(({ min, max }) => min !== undefined || max !== undefined, 'give min, max or both');

const fields = z.strictObject({
  name: z.string().regex(/^[\w.-]+$/, 'a name is letters, digits, dots, dashes and underscores'),
  title: z.string().default(''),
  source: z.string().default(''),
  seed: z.number().int().min(0).default(1),
  duration: time.refine((ns) => ns > 0, 'a run takes more than no time'),
  warmup: time.default(0),
  sample: time.default(100_000),
  /** Each flow starts up to this much later, at random by the seed. */
  jitter: time.default(0),
  topology,
  payload: z.enum(['real', 'virtual']).exactOptional(),
  queuePairs: z.enum(['at-start', 'per-flow']).default('at-start'),
  /** Events of one time are ordered by the network, so the result does not depend on the number of cores. */
  cores: z.number().int().min(1).max(64).exactOptional(),
  nic: nic.prefault({}),
  switch: switchConfigSchema.prefault({}),
  faults: faultRules.exactOptional(),
  flows: z.array(workload).min(1),
  pipelines: z.array(pipeline).default([]),
  happenings: z.array(happening).default([]),
  assertions: z.array(assertion).default([]),
});

/** Parses a scenario file to {@link Scenario}: defaults filled in, quantities in bytes, bits/s and nanoseconds. */
export const scenarioSchema = fields
  .refine(({ warmup, duration }) => warmup < duration, {
    path: ['warmup'],
    message: 'the warm-up ends before the run does',
  })
  .refine(({ sample, duration }) => sample * SERIES_POINTS_MAX >= duration, {
    path: ['sample'],
    message: `a series has at most ${SERIES_POINTS_MAX} points`,
  });

/** A scenario file as people write it. */
export type ScenarioFile = z.input<typeof scenarioSchema>;
export type Scenario = z.output<typeof scenarioSchema>;
export type Workload = Scenario['flows'][number];
export type Assertion = Scenario['assertions'][number];

export function parseScenario(value: unknown): Scenario {
  const result = scenarioSchema.safeParse(value);
  if (result.success) return result.data;
  const problems = result.error.issues.map((issue) => `${fieldName(issue.path)}: ${plainWords(issue)}`);
  throw new RoceError('ERR_ROCE_MALFORMED', `this is not a scenario: ${problems.join('; ')}`);
}

function fieldName(path: readonly PropertyKey[]): string {
  const name = path.map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`)).join('');
  return name.replace(/^\./, '') || 'the file';
}
