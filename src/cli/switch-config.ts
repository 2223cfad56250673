/** What a live switch is made of, from a JSON file and from `--port` options. */

import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import { RoceError } from '../core/errors.js';
import { parseUdpEndpoint } from '../dgram-ext/udp-endpoint.js';
import { parseFaultRules } from '../faults/grammar.js';
import { CommandFailure, EXIT_USAGE } from './exit.js';

/** Text that `parse` accepts, as what it makes of it. */
function accepted<T>(parse: (text: string) => T) {
  return z.string().transform((text, context): T => {
    try {
      return parse(text);
    } catch (error) {
      if (!(error instanceof RoceError)) throw error;
      context.addIssue({ code: 'custom', message: error.message });
      return z.NEVER;
    }
  });
}

const endpoint = accepted(parseUdpEndpoint);

const configSchema = z.strictObject({
  ports: z
    .array(
      z.strictObject({
        name: z.string().regex(/^[\w.-]+$/, 'a name is letters, digits, dots, dashes and underscores'),
        local: endpoint,
        remote: endpoint.exactOptional(),
      }),
    )
    .default([]),
  loss: accepted((text) => {
    parseFaultRules(text);
    return text;
  }).exactOptional(),
  seed: z.number().int().min(0).exactOptional(),
  /** Frames that may wait at one port. */
  queuePackets: z.number().int().min(1).max(65_536).exactOptional(),
  /** Frames in the whole switch. */
  bufferPackets: z.number().int().min(1).max(65_536).exactOptional(),
});

export type SwitchConfig = z.output<typeof configSchema>;

export const EMPTY_SWITCH_CONFIG: SwitchConfig = { ports: [] };

/** Throws a CommandFailure (usage) that names the file and the field. */
export async function readSwitchConfig(path: string): Promise<SwitchConfig> {
  let value: unknown;
  try {
    value = JSON.parse(await readFile(path, 'utf8'));
  } catch (cause) {
    throw new CommandFailure(EXIT_USAGE, `cannot read ${path}: ${(cause as Error).message}`, { cause });
  }
  const config = configSchema.safeParse(value);
  if (config.success) return config.data;
  const problems = config.error.issues.map(({ path: field, message }) => `  ${fieldName(field)}: ${message}`);
  throw new CommandFailure(EXIT_USAGE, `${path} is no switch configuration:\n${problems.join('\n')}`);
}

/** `ports[1].local` */
function fieldName(path: readonly PropertyKey[]): string {
  const name = path.map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`)).join('');
  return name.replace(/^\./, '') || 'the file';
}
