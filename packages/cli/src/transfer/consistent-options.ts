/** Options that must agree with each other; refuses what perftest refuses. */

import { isSecured } from '@rocev2/command';
import type { Command } from 'commander';
import { RoceError } from 'rocev2/internal/core';
import type { TransferOp } from './endpoint.js';
import type { TransferOptions } from './transfer-options.js';

const LARGEST_SIZE_BYTES = 2 ** 23;

function refuse(text: string, hint: string): never {
  throw new RoceError('ERR_ROCE_CONFLICT', text, hint);
}

export function consistentOptions(op: TransferOp, options: TransferOptions, command: Command): TransferOptions {
  const { all, runInfinitely, duration, postList, txDepth, inlineSize, perftest, rdmaCm, bidirectional } = options;
  const isGiven = (name: string) => command.getOptionValueSource(name) === 'cli';
  if (rdmaCm === true && perftest !== true) refuse('-R needs --perftest', 'two rocev2 programs connect over TCP');
  if (perftest === true && isSecured(options)) {
    refuse('--perftest has no secure mode', 'leave --secure out, or run rocev2 on both sides');
  }
  if (postList > txDepth) {
    refuse(`-l ${postList} is more than the ${txDepth} messages in flight`, `give -t ${postList} or more`);
  }
  if (inlineSize > 0 && (op === 'read' || op === 'atomic')) {
    refuse(`-I cannot be used with ${op}`, 'only write and send carry data in their requests');
  }
  if (runInfinitely === true && bidirectional === true && op === 'send' && perftest === true) {
    refuse('perftest does not support --run_infinitely with send -b', 'give -D');
  }
  if (all !== true) return options;
  if (op === 'atomic') refuse('-a cannot be used with atomic', 'an atomic operation is always 8 bytes');
  if (duration !== undefined || runInfinitely === true)
    refuse('-a cannot run for a time', 'give -n, the number of messages of each size');
  if (isGiven('size')) refuse('-a and -s exclude each other', 'give only one of them');
  const size = options.transport === 'ud' ? options.mtu : LARGEST_SIZE_BYTES;
  return { ...options, size };
}
