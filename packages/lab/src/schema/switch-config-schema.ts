import { rate, size, time } from '@rocev2/command/schema';
import { PFC_QUANTA_MAX, PRIORITIES } from 'rocev2/internal/packet';
import { z } from 'zod';
import type { SwitchConfig } from '../switch/switch-config.js';

const priority = z
  .number()
  .int()
  .min(0)
  .max(PRIORITIES - 1);
const priorities = z.array(priority);
const probability = z.number().min(0).max(1);
const positive = z.number().positive();
const count = z.number().int().min(1);

const markingSite = {
  at: z.enum(['dequeue', 'enqueue']).exactOptional(),
  priorities: priorities.exactOptional(),
  dropNotEct: z.boolean().exactOptional(),
};

const marking = z.discriminatedUnion('kind', [
  z
    .strictObject({ kind: z.literal('red'), kminBytes: size, kmaxBytes: size, pmax: probability, ...markingSite })
    .refine(({ kminBytes, kmaxBytes }) => kminBytes <= kmaxBytes, {
      path: ['kmaxBytes'],
      message: 'Kmax is at least Kmin',
    }),
  z.strictObject({
    kind: z.literal('pi'),
    referenceBytes: size,
    proportionalPerByte: positive,
    integralPerByteSecond: positive,
    ...markingSite,
  }),
]);

const buffer = z.strictObject({
  totalBytes: size.exactOptional(),
  headroomPoolBytes: size.exactOptional(),
  headroomOversubscription: z.number().min(1).exactOptional(),
  ingressPoolBytes: size.exactOptional(),
  egressLossyPoolBytes: size.exactOptional(),
  losslessAlpha: positive.exactOptional(),
  lossyAlpha: positive.exactOptional(),
  reservedBytes: size.exactOptional(),
  xonOffsetBytes: size.exactOptional(),
});

const duration = time.refine((ns) => ns > 0, 'a time is more than 0');

const watchdog = z.strictObject({
  detectNs: duration.exactOptional(),
  restoreNs: duration.exactOptional(),
  pollNs: duration.exactOptional(),
  action: z.enum(['drop', 'forward', 'alert']).exactOptional(),
});

const pfc = z.strictObject({
  priorities: priorities.min(1),
  quanta: z.number().int().min(1).max(PFC_QUANTA_MAX).exactOptional(),
  watchdog: watchdog.exactOptional(),
});

const classification = z.strictObject({
  trust: z.enum(['dscp', 'pcp']).exactOptional(),
  dscpToPriority: z
    .record(z.string().regex(/^([0-9]|[1-5][0-9]|6[0-3])$/, 'a DSCP is 0 to 63'), priority)
    .exactOptional(),
});

const scheduling = z.strictObject({
  strict: priorities.exactOptional(),
  weights: z.array(count).length(PRIORITIES, 'one weight for each of the eight priorities').exactOptional(),
});

const route = z.strictObject({ to: z.string(), ports: z.array(z.string()).min(1) });

const int = z.strictObject({ isOn: z.boolean().exactOptional(), baseRttNs: duration.exactOptional() });

const trim = z.strictObject({ priority: priority.exactOptional() });

export const switchPortFields = {
  rateBps: rate.exactOptional(),
  cableMetres: z.number().nonnegative().exactOptional(),
  headroomBytes: size.exactOptional(),
  ecn: marking.nullable().exactOptional(),
};
const port = z.strictObject(switchPortFields);

export const switchFields = {
  queuePackets: count.exactOptional(),
  bufferPackets: count.exactOptional(),
  macTableEntries: count.exactOptional(),
  macAgeNs: time.exactOptional(),
  frameBytesMax: z.number().int().min(64).max(65_535).exactOptional(),
  classification: classification.exactOptional(),
  scheduling: scheduling.exactOptional(),
  buffer: buffer.exactOptional(),
  pfc: pfc.exactOptional(),
  ecn: marking.exactOptional(),
  int: int.exactOptional(),
  trim: trim.exactOptional(),
  routes: z.array(route).exactOptional(),
  flood: z.boolean().exactOptional(),
  hashSeed: z.number().int().min(0).exactOptional(),
  portDefaults: port.exactOptional(),
};

export const switchConfigSchema = z.strictObject({
  ...switchFields,
  portConfig: z.record(z.string(), port).exactOptional(),
}) satisfies z.ZodType<SwitchConfig>;
