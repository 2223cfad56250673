import { availableParallelism, cpus, homedir } from 'node:os';
import { wallMs } from 'rocev2/internal/driver';
import { packageVersion } from './package-version.js';

/** The machine, without the names of host and user. */
export interface HostFacts {
  /** Cores that this process may use. */
  readonly cores: number;
  /** Processor model as the operating system names it; empty if it is unknown. */
  readonly cpu: string;
  /** Version of Node.js. */
  readonly node: string;
  /** `linux`, `darwin` or `win32`. */
  readonly platform: string;
  /** `x64` or `arm64`. */
  readonly arch: string;
}

/** The fields that every document begins with (docs/json.md). */
export interface DocumentHead {
  /** Name of the schema: `schemas/NAME.json` of the package that the command belongs to. */
  readonly schema: string;
  /** Incremented when a field changes its meaning or is removed. A new field does not increment it. */
  readonly schemaVersion: number;
  /** Version of rocev2. */
  readonly toolVersion: string;
  /** The command line; `~` is the home directory. */
  readonly command: string;
  /** Where the command ran. */
  readonly host: HostFacts;
  /** When the command began, ISO 8601 in UTC. */
  readonly start: string;
  /** When the document was made, ISO 8601 in UTC. */
  readonly end: string;
}

export const SCHEMA_VERSION = 1;

export function documentHead(schema: string, args: readonly string[], startMs: number): DocumentHead {
  return {
    schema,
    schemaVersion: SCHEMA_VERSION,
    toolVersion: packageVersion(),
    command: ['rocev2', ...args.map(quoted)].join(' ').replaceAll(homedir(), '~'),
    host: hostFacts(),
    start: new Date(startMs).toISOString(),
    end: new Date(wallMs()).toISOString(),
  };
}

function hostFacts(): HostFacts {
  const { platform, arch, versions } = process;
  return { cores: availableParallelism(), cpu: cpus()[0]?.model.trim() ?? '', node: versions.node, platform, arch };
}

function quoted(arg: string): string {
  return /^[\w@%+=:,./-]+$/.test(arg) ? arg : `'${arg.replaceAll("'", "'\\''")}'`;
}
