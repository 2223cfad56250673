/** Options of commands that move data: where the NIC runs, and how it sends and receives datagrams. */

import type { Command } from 'commander';
import { z } from 'zod';
import { PORT_IOS, type PortIo } from '../driver/port-io.js';
import { ENGINES, type EngineName } from '../verbs/open-device.js';
import { choiceOption } from './options.js';

/** Options of `openDevice`. */
export interface NicOptions {
  /** How datagrams are sent and received. */
  readonly io: PortIo;
  /** Where the NIC runs. */
  readonly engine: EngineName;
  /** Poll before sleeping; worker engine only. */
  readonly spin: boolean;
}

/** The same options, for calls between processes. */
export const nicOptionsShape = { io: z.enum(PORT_IOS), engine: z.enum(ENGINES), spin: z.boolean() };

/** Adds the options to a command; `engine` is the default. */
export function addNicOptions(command: Command, engine: EngineName = 'inline'): Command {
  return command
    .option('--io <way>', `${PORT_IOS.join(', ')}: how datagrams are sent and received`, choiceOption(PORT_IOS), 'auto')
    .option('--engine <where>', `${ENGINES.join(', ')}: where the NIC runs`, choiceOption(ENGINES), engine)
    .option('--no-spin', 'worker engine: sleep at once, without polling first');
}
