import { z } from 'zod';

const number = z.number();

/** Parses the document of a switch. */
export const switchSchema = z.object({
  kind: z.literal('switch'),
  version: z.literal(1),
  pid: number,
  /** The address its ports are bound to; several with commas between them. */
  address: z.string(),
  /** ISO 8601. */
  time: z.string(),
  uptimeSeconds: number,
  ports: z.array(
    z.object({
      name: z.string(),
      /** `HOST:PORT` of its socket; at a wire also the name of an interface, or an address. */
      local: z.string(),
      /** Emulated link rate, bits/s; null: as fast as software is. */
      rateBps: number.nullable(),
      counters: z.record(z.string(), number),
      /** What waits to leave through it now, all priorities together, and the longest queue of one priority so far. */
      queueBytes: number,
      queueBytesMax: number,
      /** Priorities that the neighbour has paused, and those that the watchdog has given up on. */
      pausedPriorities: z.array(number),
      stormPriorities: z.array(number),
    }),
  ),
  /** Fault rules, and how often each has struck. */
  rules: z.array(z.object({ rule: z.string(), hits: number })),
});

/** What a switch answers. */
export type SwitchDocument = z.infer<typeof switchSchema>;
