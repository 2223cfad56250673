/** Options of commands that move data: where the NIC runs, and how its datagrams get in and out. */

import type { Command } from 'commander';
import { z } from 'zod';
import { PORT_IOS, type PortIo } from '../driver/port-io.js';
import { ENGINES, type EngineName } from '../verbs/open-device.js';
import { choiceOption } from './options.js';

/** As `openDevice` takes them. */
export interface NicOptions {
  /** How datagrams get in and out. */
  readonly io: PortIo;
  /** Where the NIC runs. */
  readonly engine: EngineName;
  /** Look again before sleeping; worker engine only. */
  readonly spin: boolean;
}

/** The same, for calls between processes. */
export const nicOptionsShape = { io: z.enum(PORT_IOS), engine: z.enum(ENGINES), spin: z.boolean() };

/** Adds the options to a command; `engine` is the default. */
export function addNicOptions(command: Command, engine: EngineName = 'inline'): Command {
  return command
    .option('--io <way>', `${PORT_IOS.join(', ')}: how datagrams get in and out`, choiceOption(PORT_IOS), 'auto')
    .option('--engine <where>', `${ENGINES.join(', ')}: where the NIC runs`, choiceOption(ENGINES), engine)
    .option('--no-spin', 'worker engine: never look again before sleeping');
}
