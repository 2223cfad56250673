/** `rocev2 kv`: a cache whose readers READ the memory of its owner. */

import {
  addHttpTelemetryOption,
  addNicOptions,
  addressOption,
  addSecureOptions,
  type CliIo,
  choiceOption,
  countOption,
  Output,
  optionWithDefault,
  portOption,
  portOrAnyOption,
  positiveDurationOption,
  printing,
  rangeOption,
  secondsOption,
  sizeOption,
  textOption,
} from '@rocev2/command';
import type { Command } from 'commander';
import { parseSizeBytes, RoceError } from 'rocev2/internal/core';
import { runKvBench } from './bench.js';
import { type KvSetOptions, runKvGet, runKvList, runKvSet } from './entries.js';
import { runKvServe } from './serve.js';
import { runKvWatch } from './watch.js';

const KV_PORT = 18521;
const BENCH_VALUE_BYTES_MIN = 8;
const OWNERS = 'address of the owner, or HOST:PORT,HOST:PORT of owners that share the keys';

const valueBytes = textOption((text) => {
  const bytes = parseSizeBytes(text);
  if (bytes >= BENCH_VALUE_BYTES_MIN) return bytes;
  throw new RoceError(
    'ERR_ROCE_OUT_OF_RANGE',
    `a value of ${bytes} bytes is too short: at least ${BENCH_VALUE_BYTES_MIN}`,
  );
});

const share = textOption((text) => {
  const number = Number(text);
  if (text !== '' && number >= 0 && number <= 1) return number;
  throw new RoceError('ERR_ROCE_OUT_OF_RANGE', `the share '${text}' is not a number from 0 to 1`);
});

/** Adds `rocev2 kv` to `program`. */
export function register(program: Command, io: CliIo): void {
  const kv = program
    .command('kv')
    .description('Share a cache. Readers READ the memory of its owner, so that a busy owner does not delay them.')
    .addHelpText(
      'after',
      `
Examples:
  rocev2 kv serve
  rocev2 kv set 127.0.0.1 colour green
  rocev2 kv get 127.0.0.1 colour
  rocev2 kv help bench                            # the options of a command`,
    );
  registerServe(kv, io);
  registerGet(kv, io);
  registerSet(kv, io);
  registerList(kv, io);
  registerWatch(kv, io);
  registerBench(kv, io);
}

function addReaderOptions(command: Command): Command {
  command
    .option('-p, --port <port>', 'TCP port of owners whose address has none', portOption, KV_PORT)
    .option('--bind <address>', 'IP address of this side (default: from the routing table)', addressOption);
  return addSecureOptions(addNicOptions(command)).option('--json', 'print one JSON document');
}

function registerServe(kv: Command, io: CliIo): void {
  const command = kv
    .command('serve')
    .description('Serve a store. It runs until Ctrl-C, then prints its counters.')
    .option('-p, --port <port>', 'TCP port for connection setup; 0: the system chooses', portOrAnyOption, KV_PORT)
    .addOption(optionWithDefault('--bind <address>', 'IP address of this side', addressOption, '127.0.0.1'))
    .addOption(optionWithDefault('--memory <size>', 'memory for values', sizeOption, '64MiB'))
    .option('--entries <n>', 'number of entries for which the table has room', countOption, 65_536)
    .addOption(optionWithDefault('--value-max <size>', 'longest value', sizeOption, '64KiB'))
    .option('--eviction <policy>', 'eviction when the store is full: lru or none', choiceOption(['lru', 'none']), 'lru')
    .option('--snapshot <file>', 'load the entries from this file at the start, and save them there (default: none)')
    .addOption(optionWithDefault('--every <time>', 'time between snapshots', positiveDurationOption, '30s'));
  addSecureOptions(addNicOptions(addHttpTelemetryOption(command), 'worker'))
    .option('--json', 'print one JSON document at the end')
    .addHelpText(
      'after',
      `
Examples:
  rocev2 kv serve
  rocev2 kv serve --memory 1GiB --entries 1000000 --eviction none
  rocev2 kv serve --snapshot cache.kv --every 10s`,
    )
    .action(printing(io, runKvServe));
}

function registerGet(kv: Command, io: CliIo): void {
  const command = kv
    .command('get')
    .description(
      'Print the value of a key as text, or as base64 if it is not valid UTF-8. Exit code 1: the entry does not exist.',
    )
    .argument('<host>', OWNERS)
    .argument('<key>', 'the key');
  addReaderOptions(command)
    .addHelpText(
      'after',
      '\nExamples:\n  rocev2 kv get 127.0.0.1 colour\n  rocev2 kv get 127.0.0.1:18521,127.0.0.1:18522 colour',
    )
    .action(printing(io, runKvGet));
}

function registerSet(kv: Command, io: CliIo): void {
  const command = kv
    .command('set')
    .description(
      'Write a value and print its version. Exit code 1: the version of the entry is not that of --if-version.',
    )
    .argument('<host>', OWNERS)
    .argument('<key>', 'the key')
    .argument('<value>', 'the value, as text')
    .option('--ttl <time>', 'lifetime of the entry (default: unlimited)', positiveDurationOption)
    .option(
      '--if-version <n>',
      'write only if the entry has this version; 0: only if it does not exist',
      rangeOption(0, Number.MAX_SAFE_INTEGER),
    );
  addReaderOptions(command)
    .addHelpText(
      'after',
      `
Examples:
  rocev2 kv set 127.0.0.1 colour green
  rocev2 kv set 127.0.0.1 leader me --if-version 0 --ttl 10s`,
    )
    .action((host: string, key: string, value: string, options: KvSetOptions & { json?: true }) =>
      runKvSet(host, [key, value], options, new Output(io, options.json === true)),
    );
}

function registerList(kv: Command, io: CliIo): void {
  const command = kv
    .command('list')
    .description('Print all entries, or those whose keys begin with a prefix.')
    .argument('<host>', OWNERS)
    .argument('[prefix]', 'beginning of the keys', '');
  addReaderOptions(command)
    .addHelpText('after', '\nExamples:\n  rocev2 kv list 127.0.0.1 user:')
    .action(printing(io, runKvList));
}

function registerWatch(kv: Command, io: CliIo): void {
  const command = kv
    .command('watch')
    .description('Print every change of the entries, or of those whose keys begin with a prefix, until Ctrl-C.')
    .argument('<host>', OWNERS)
    .argument('[prefix]', 'beginning of the keys', '')
    .option('-n, --count <n>', 'exit after this many changes', countOption);
  addReaderOptions(command)
    .addHelpText(
      'after',
      `
Examples:
  rocev2 kv watch 127.0.0.1
  rocev2 kv watch 127.0.0.1 user: -n 1`,
    )
    .action(printing(io, runKvWatch));
}

function registerBench(kv: Command, io: CliIo): void {
  const command = kv
    .command('bench')
    .description('Write keys into a store, then measure GETs and SETs on them. Every value is checked.')
    .argument('<host>', OWNERS)
    .option('--keys <n>', 'number of keys', countOption, 10_000)
    .addOption(optionWithDefault('--value <size>', 'bytes of each value', valueBytes, '100'))
    .option('--gets <share>', 'share of GETs, 0 to 1; the rest are SETs', share, 0.95)
    .option('--depth <n>', 'operations in flight', rangeOption(1, 1024), 1)
    .addOption(optionWithDefault('-D, --duration <time>', 'duration', secondsOption, '5s'));
  addReaderOptions(command)
    .addHelpText(
      'after',
      `
Examples:
  rocev2 kv bench 127.0.0.1
  rocev2 kv bench 127.0.0.1 --value 4KiB --depth 16 --engine worker`,
    )
    .action(printing(io, runKvBench));
}
