/** `rocev2 window`: the sliding-window memory pool against one request for memory a write. */

import {
  addNicOptions,
  alternatives,
  type CliIo,
  CommandFailure,
  choiceOption,
  countOption,
  defineDocument,
  durationOption,
  EXIT_VERIFICATION_FAILED,
  leftAligned,
  type NicFlags,
  nicOf,
  type Output,
  optionWithDefault,
  printing,
  rightAligned,
  sizeOption,
} from '@rocev2/command';
import { type Command, InvalidArgumentError } from 'commander';
import { formatBytes, formatRate, RoceError } from 'rocev2/internal/core';
import { checkNagle, checkPool } from 'rocev2/internal/window';
import { runWindow, type WindowResult } from '../window/experiment.js';
import { WINDOW_POLICIES, type WindowPolicy } from '../window/policies.js';

const WINDOW_DOCUMENT = defineDocument<WindowResult>('window');

interface WindowOptions extends NicFlags {
  readonly blocks: number;
  readonly block: number;
  readonly total: number;
  readonly policy: WindowPolicy;
  readonly mas?: number;
  readonly mat: number;
  readonly growTo?: number;
}

export function register(program: Command, io: CliIo): void {
  const command = program
    .command('window')
    .description(
      'Write into a pool of blocks that a server process describes once. A write names its block; no request precedes ' +
        'it. The server releases blocks after it has read them. The baseline requests memory before every write.',
    )
    .option('--blocks <n>', 'blocks in the pool (M)', countOption, 16)
    .addOption(optionWithDefault('--block <size>', 'block size (m)', positiveSize, '1MiB'))
    .addOption(optionWithDefault('--total <size>', 'bytes to write', positiveSize, '1GiB'))
    .option(
      '--policy <name>',
      `how the server releases blocks: ${alternatives(WINDOW_POLICIES)}`,
      choiceOption(WINDOW_POLICIES),
      'nagle',
    )
    .option('--mas <n>', 'nagle: acknowledge when this many blocks are free (default: half of the pool)', countOption)
    .addOption(
      optionWithDefault(
        '--mat <time>',
        'nagle: or acknowledge when the oldest free block has waited this long',
        durationOption,
        '5ms',
      ),
    )
    .option('--grow-to <n>', 'let a pool that is often exhausted grow to this many blocks', countOption);
  addNicOptions(command)
    .option('--json', 'print one JSON document')
    .addHelpText(
      'after',
      `
Examples:
  rocev2 window                                   # 16 blocks of 1 MiB, 1 GiB in all
  rocev2 window --policy baseline                 # the same, with a request before every write
  rocev2 window --blocks 2 --grow-to 32           # a pool that starts too small
  rocev2 window --engine worker                   # NICs in separate threads`,
    )
    .action(printing(io, window));
}

async function window(options: WindowOptions, output: Output): Promise<void> {
  const { blocks, block, total, policy, growTo } = options;
  if (growTo !== undefined && (growTo < blocks || policy === 'baseline')) {
    throw new RoceError(
      'ERR_ROCE_CONFLICT',
      `--grow-to ${growTo} cannot be used here`,
      policy === 'baseline' ? 'the baseline has no window' : `the pool begins with ${blocks} blocks`,
    );
  }
  const mas = options.mas ?? Math.max(1, blocks >>> 1);
  checkPool(growTo ?? blocks, block);
  if (policy === 'nagle') checkNagle({ maxAvailableSegments: mas, maxAckTimeNs: options.mat }, blocks);
  output.line(`${formatBytes(total)} in blocks of ${formatBytes(block)}, a pool of ${blocks}, policy ${policy}`);
  const progress = output.progress(total);
  const { interrupted } = output.io;
  const onSent = (bytes: number) => progress.update(bytes, formatBytes(bytes));
  const result = await runWindow(
    {
      policy,
      blocks,
      blockBytes: block,
      totalBytes: total,
      blocksMax: growTo ?? blocks,
      mas,
      matNs: options.mat,
      nic: nicOf(options),
    },
    { interrupted, onSent, note: (text) => output.note(text) },
  ).finally(() => progress.stop());
  output.line();
  output.table(
    [
      ...leftAligned('policy'),
      ...rightAligned('seconds', 'goodput', 'control messages', 'stalls', 'blocks at the end'),
    ],
    [
      [
        policy,
        result.seconds.toFixed(3),
        formatRate(result.goodputBps),
        result.controlMessages,
        result.windowStalls,
        result.blocks,
      ],
    ],
  );
  output.line();
  output.line(
    result.verified
      ? 'Every block arrived intact and in order.'
      : 'The received data is WRONG: it differs from the data sent.',
  );
  output.document(WINDOW_DOCUMENT, result);
  if (!result.verified) throw new CommandFailure(EXIT_VERIFICATION_FAILED);
  output.throwIfInterrupted();
}

function positiveSize(text: string): number {
  const bytes = sizeOption(text);
  if (bytes === 0) throw new InvalidArgumentError('it must be at least one byte.');
  return bytes;
}
