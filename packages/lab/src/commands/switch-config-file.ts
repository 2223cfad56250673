import { CommandFailure, EXIT_USAGE, readJsonFile } from '@rocev2/command';
import { parsedText, plainWords } from '@rocev2/command/schema';
import { SeededRandom } from 'rocev2/internal/core';
import { parseUdpEndpoint } from 'rocev2/internal/dgram-ext';
import { FaultPlan, parseFaultRules } from 'rocev2/internal/faults';
import { z } from 'zod';
import type { LiveSwitchOptions, LiveSwitchPort } from '../live/live-switch.js';
import { switchFields, switchPortFields } from '../schema/switch-config-schema.js';
import type { MarkingConfig, SwitchPortConfig } from '../switch/switch-config.js';

const endpoint = parsedText(parseUdpEndpoint);

const configSchema = z.strictObject({
  ...switchFields,
  ports: z
    .array(
      z.strictObject({
        name: z.string().regex(/^[\w.-]+$/, 'a name is letters, digits, dots, dashes and underscores'),
        local: endpoint,
        remote: endpoint.exactOptional(),
        ...switchPortFields,
      }),
    )
    .default([]),
  loss: parsedText((text) => {
    parseFaultRules(text);
    return text;
  }).exactOptional(),
  seed: z.number().int().min(0).exactOptional(),
});

type SwitchFile = z.output<typeof configSchema>;

export const EMPTY_SWITCH_FILE: SwitchFile = { ports: [] };

export async function readSwitchFile(path: string): Promise<SwitchFile> {
  const value = await readJsonFile(path);
  const config = configSchema.safeParse(value);
  if (config.success) return config.data;
  const problems = config.error.issues.map((issue) => `  ${fieldName(issue.path)}: ${plainWords(issue)}`);
  throw new CommandFailure(EXIT_USAGE, `${path} is not a switch configuration:\n${problems.join('\n')}`);
}

function fieldName(path: readonly PropertyKey[]): string {
  const name = path.map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`)).join('');
  return name.replace(/^\./, '') || 'the file';
}

export interface PortRate {
  readonly port: string | undefined;
  readonly rateBps: number;
}

export interface SwitchOverrides {
  readonly port?: readonly LiveSwitchPort[];
  readonly rate?: readonly PortRate[];
  readonly ecn?: MarkingConfig;
  readonly pfc?: readonly number[];
  readonly faults?: string;
  readonly seed?: number;
}

/**
 * After an XOFF, everything that a host has in flight still arrives, and its event loop sees the pause late: much more
 * than on a cable. This is as much as a host's receive budget lets others send to it.
 */
const LIVE_HEADROOM_BYTES = 4 * 2 ** 20;
const LIVE_SHARED_BYTES = 16 * 2 ** 20;

export function liveSwitchOptions(
  file: SwitchFile,
  overrides: SwitchOverrides,
): { readonly options: LiveSwitchOptions; readonly faults: FaultPlan | undefined } {
  const { ports: configured, loss: fileLoss, seed: fileSeed, ...fileConfig } = file;
  const ports = [...configured, ...(overrides.port ?? [])];
  const loss = overrides.faults ?? fileLoss;
  const random = new SeededRandom(overrides.seed ?? fileSeed ?? 1);
  const faults =
    loss === undefined
      ? undefined
      : FaultPlan.parse(
          loss,
          random,
          ports.map(({ name }) => name),
        );
  const rates = overrides.rate ?? [];
  const unknown = rates.find(({ port }) => port !== undefined && ports.every(({ name }) => name !== port));
  if (unknown !== undefined) throw new CommandFailure(EXIT_USAGE, `--rate: there is no port '${unknown.port}'`);
  const rateOfAll = rates.findLast(({ port }) => port === undefined);
  const portConfig = Object.fromEntries(
    ports.map(({ name, local: _local, remote: _remote, ...config }): [string, SwitchPortConfig] => {
      const rate = rates.findLast((candidate) => candidate.port === name) ?? rateOfAll;
      return [name, { ...config, ...(rate !== undefined && { rateBps: rate.rateBps }) }];
    }),
  );
  const ecn = overrides.ecn ?? fileConfig.ecn;
  const options: LiveSwitchOptions = {
    ...fileConfig,
    ...(overrides.pfc !== undefined && lossless(overrides.pfc, ports.length, fileConfig)),
    ...(ecn !== undefined && { ecn }),
    ...(faults !== undefined && { faults }),
    ports,
    portConfig,
    random: random.stream('marking'),
  };
  return { options, faults };
}

function lossless(priorities: readonly number[], ports: number, file: Omit<SwitchFile, 'ports' | 'loss' | 'seed'>) {
  const headroomBytes = file.portDefaults?.headroomBytes ?? LIVE_HEADROOM_BYTES;
  const totalBytes = LIVE_SHARED_BYTES + ports * priorities.length * headroomBytes;
  return {
    pfc: { ...file.pfc, priorities },
    buffer: file.buffer ?? { totalBytes },
    portDefaults: { ...file.portDefaults, headroomBytes },
  };
}
