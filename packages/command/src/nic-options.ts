import { availableParallelism } from 'node:os';
import { type Command, Option } from 'commander';
import { PORT_IOS, type PortIo } from 'rocev2/internal/driver';
import { ENGINES, type EngineName } from 'rocev2/internal/verbs';
import { z } from 'zod';
import { addNetworkOptions } from './help-format.js';
import { alternatives, choiceOption } from './options.js';

export interface NicFlags {
  readonly io: PortIo;
  /** Where the NIC runs. */
  readonly engine: EngineName;
  readonly spin: boolean;
  /** Peers of the same user may map regions. */
  readonly mapRegions: boolean;
}

export const nicOptionsShape = {
  io: z.enum(PORT_IOS),
  engine: z.enum(ENGINES),
  spin: z.boolean(),
  mapRegions: z.boolean(),
};

/** The options of `openDevice` that these flags are. */
export function nicOf({ io, engine, spin, mapRegions }: NicFlags): NicFlags {
  return { io, engine, spin, mapRegions };
}

/**
 * A thread for the NIC pays once both ends of a connection on this machine have a core for theirs
 * (docs/how-to/measure.md).
 */
const CORES_FOR_WORKERS = 4;

/**
 * Where the NIC of a storage server or gateway runs. NVMe targets are faster with a thread for it even so, with many
 * large requests.
 */
const IO_ENGINE: EngineName = availableParallelism() >= CORES_FOR_WORKERS ? 'worker' : 'inline';

export function addNicOptions(command: Command, engine: EngineName = 'inline'): Command {
  return addNicOptionsWith(command, (option) => option.default(engine));
}

export function addIoNicOptions(command: Command): Command {
  const words = `worker with ${CORES_FOR_WORKERS} cores or more, else inline`;
  return addNicOptionsWith(command, (option) => option.default(IO_ENGINE, words));
}

function addNicOptionsWith(command: Command, setDefault: (engine: Option) => Option): Command {
  const engine = new Option('--engine <name>', `where the NIC runs: ${alternatives(ENGINES)}`);
  return addNetworkOptions(command, (group) =>
    group
      .option(
        '--io <backend>',
        `I/O backend: ${alternatives(PORT_IOS)}; auto: memory shared with peers of the same user on this host, else mmsg or dgram`,
        choiceOption(PORT_IOS),
        'auto',
      )
      .addOption(setDefault(engine.argParser(choiceOption(ENGINES))))
      .option('--no-spin', 'worker engine: sleep at once, without polling first')
      .option('--no-map-regions', 'send packets to peers of the same user, instead of copies into their memory'),
  );
}
