import { z } from 'zod';

const number = z.number();

export const switchSchema = z.object({
  kind: z.literal('switch'),
  version: z.literal(1),
  pid: number,
  address: z.string(),
  time: z.string(),
  uptimeSeconds: number,
  ports: z.array(
    z.object({
      name: z.string(),
      local: z.string(),
      rateBps: number.nullable(),
      counters: z.record(z.string(), number),
      queueBytes: number,
      queueBytesMax: number,
      pausedPriorities: z.array(number),
      stormPriorities: z.array(number),
    }),
  ),
  rules: z.array(z.object({ rule: z.string(), hits: number })),
});

export type SwitchDocument = z.infer<typeof switchSchema>;
