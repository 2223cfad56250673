/**
 * What a scenario file may say. Every field that can be left out has its default here; a refusal names the field and what is allowed.
 */

import { z } from 'zod';
import { RoceError } from '../../core/errors.js';
import { parseFaultRules } from '../../faults/grammar.js';
import { PATH_MTUS } from '../../packet/path-mtu.js';
import { STANDARD_RECOVERY } from '../../retransmit/schemes.js';
import { parsedText } from '../../schema/parsed-text.js';
import { plainWords } from '../../schema/plain-words.js';
import { rate, size, time } from '../../schema/quantities.js';
import { switchConfigSchema } from '../../schema/switch-config.js';
import { rateControl, recovery } from './schemes.js';

/** Points of a series: a finer `sample` says nothing more, and fills the memory. */
const SERIES_POINTS_MAX = 1e6;

const hostCount = z.number().int().min(2).max(1024);
const link = { rate: rate.default(40e9), delay: time.default(1_000) };

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
]);

/** `h0`, `h0..h9`, or a list of both. */
const hostText = z.string().regex(/^h\d+(\.\.h\d+)?$/, 'write a host as h0, several as h0..h9');
const hosts = z.union([hostText, z.array(hostText).min(1)]);

const OPS = ['write', 'send', 'read'] as const;

const flowCommon = {
  from: hosts,
  to: hosts,
  op: z.enum(OPS).default('write'),
  /** Bytes of one work request. */
  message: size.default(65_536),
  start: time.default(0),
  /** Rate control of the source, instead of `nic.cc`. */
  cc: rateControl.exactOptional(),
  /** Of the sink, where it differs: how it answers marked packets. */
  sinkCc: rateControl.exactOptional(),
};

const workload = z.discriminatedUnion('kind', [
  /** One flow from every `from` to every `to`, for as long as the run lasts, or for `bytes`. */
  z.strictObject({
    kind: z.literal('flows'),
    ...flowCommon,
    /** Without it the flow never ends. */
    bytes: size.exactOptional(),
    /** Flows between each two hosts. */
    each: z.number().int().min(1).max(1024).default(1),
    /** Every further flow starts so much later. */
    stagger: time.default(0),
    /** Work requests posted ahead. */
    outstanding: z.number().int().min(1).max(1024).default(8),
  }),
  /** Flows of random size between random hosts, arriving as a Poisson process. */
  z.strictObject({
    kind: z.literal('poisson'),
    ...flowCommon,
    message: size.default(2 ** 20),
    sizes: z.literal('web-search').default('web-search'),
    /** Mean offered load: bits of payload a second, all flows together. */
    offered: rate,
    /** When arrivals end; default: with the run. */
    until: time.exactOptional(),
    outstanding: z.number().int().min(1).max(1024).default(64),
  }),
]);

const faultRules = parsedText((text) => {
  parseFaultRules(text);
  return text;
});

const nic = z.strictObject({
  mtu: z.literal([...PATH_MTUS], { error: `the path MTU is one of ${PATH_MTUS.join(', ')}` }).default(1024),
  recovery: recovery.prefault(STANDARD_RECOVERY),
  /** Packets a sender may have in flight to one host. */
  inflight: z.number().int().min(2).default(16_384),
  /** Code of the ACK timeout: 4.096 us * 2^code (IBTA §11.2.4.2). */
  timeout: z.number().int().min(1).max(31).default(10),
  cc: rateControl.prefault('none'),
});

const priority = z.number().int().min(0).max(7);
const egress = { at: time, switch: z.string(), port: z.string(), priority: priority.exactOptional() };

/** What happens to the network in between. */
const happening = z.discriminatedUnion('do', [
  /** An egress sends nothing any more, or nothing of one priority. */
  z.strictObject({ do: z.literal('block'), ...egress }),
  z.strictObject({ do: z.literal('unblock'), ...egress }),
  /** A broken host sends pause frames without end, or until a time. */
  z.strictObject({
    do: z.literal('storm'),
    at: time,
    host: z.string(),
    priority: priority.default(0),
    until: time.exactOptional(),
  }),
]);

/** Hosts whose NIC holds the contexts of few queue pairs: see receive-pipeline.ts. */
const pipeline = z.strictObject({
  hosts,
  /** Queue pairs that the cache holds. */
  contexts: z.number().int().min(1),
  /** Time of a packet whose queue pair is in the cache, and of any other. */
  hit: time,
  miss: time,
  /** What may wait; pauses begin at half of it. */
  buffer: size.default(262_144),
  priority: priority.default(0),
});

const assertion = z
  .strictObject({
    name: z.string(),
    /** A path into the result: `summary.jain`, `queues[s0>h2].meanBytes`, `flows[0].goodputBps`. */
    value: z.string(),
    min: z.number().exactOptional(),
    max: z.number().exactOptional(),
  })
  .refine(({ min, max }) => min !== undefined || max !== undefined, 'give min, max or both');

const fields = z.strictObject({
  name: z.string().regex(/^[\w.-]+$/, 'a name is letters, digits, dots, dashes and underscores'),
  title: z.string().default(''),
  /** Where the set-up and the expected numbers come from. */
  source: z.string().default(''),
  seed: z.number().int().min(0).default(1),
  /** Virtual time of the run. */
  duration: time.refine((ns) => ns > 0, 'a run takes more than no time'),
  /** Left out of goodput, queue statistics and counts. */
  warmup: time.default(0),
  /** Interval of the series. */
  sample: time.default(100_000),
  topology,
  nic: nic.prefault({}),
  /** Options of every switch: see docs/switch.md. */
  switch: switchConfigSchema.prefault({}),
  /** Fault rules of every switch: see docs/faults.md. */
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
/** A scenario with all defaults, in base units. */
export type Scenario = z.output<typeof scenarioSchema>;
/** One entry of `flows`: a pattern of flows of one kind. */
export type Workload = Scenario['flows'][number];
/** One entry of `assertions`: bounds of a value of the result. */
export type Assertion = Scenario['assertions'][number];

/** Throws ERR_ROCE_MALFORMED that lists every field at fault. */
export function parseScenario(value: unknown): Scenario {
  const result = scenarioSchema.safeParse(value);
  if (result.success) return result.data;
  const problems = result.error.issues.map((issue) => `${fieldName(issue.path)}: ${plainWords(issue)}`);
  throw new RoceError('ERR_ROCE_MALFORMED', `this is not a scenario: ${problems.join('; ')}`);
}

/** `flows[1].from` */
function fieldName(path: readonly PropertyKey[]): string {
  const name = path.map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`)).join('');
  return name.replace(/^\./, '') || 'the file';
}
