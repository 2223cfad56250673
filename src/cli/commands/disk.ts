/** `rocev2 disk`: disks over RDMA for every program that knows NBD. */

import { type Command, InvalidArgumentError } from 'commander';
import { parseSocketAddress } from '../../storage-rpc/nbd/socket-address.js';
import { BENCH_TRANSPORTS, type BenchOptions, runBench } from '../disk/bench.js';
import { BENCH_OPS } from '../disk/bench-run.js';
import { type NbdGatewayOptions, runNbdGateway } from '../disk/nbd-gateway.js';
import { addRdmaOptions, addTelemetryOption } from '../disk/rdma-options.js';
import { TRANSPORTS } from '../disk/remote-disk.js';
import { runServe, type ServeOptions } from '../disk/serve.js';
import {
  choiceOption,
  countOption,
  durationOption,
  listOption,
  optionWithDefault,
  sizeOption,
  textOption,
} from '../options.js';
import { type CliIo, Output } from '../output.js';

const BACKEND_HELP = 'memory, file:PATH or nbd:URI';
const SIZE_HELP = 'of a disk in memory or in a new file';

/** Adds `rocev2 disk` to `program`. */
export function register(program: Command, io: CliIo): void {
  const disk = program
    .command('disk')
    .description('Serve disks over RDMA, and use them from any program that knows NBD.')
    .addHelpText(
      'after',
      `
Examples:
  rocev2 disk serve --backend file:/var/tmp/disk --size 10GiB
  rocev2 disk nbd --connect 127.0.0.1 --listen unix:/tmp/disk.sock
  rocev2 disk help nbd                            # the options of a command`,
    );
  registerServe(disk, io);
  registerNbd(disk, io);
  registerBench(disk, io);
}

function registerServe(disk: Command, io: CliIo): void {
  const command = disk
    .command('serve')
    .description('A storage server: clients use its disk over RDMA, or over TCP. It runs until Ctrl-C.')
    .requiredOption('--backend <store>', BACKEND_HELP)
    .option('--size <size>', SIZE_HELP, sizeOption);
  addTelemetryOption(addRdmaOptions(command))
    .option('--json', 'print one JSON document at the end')
    .addHelpText(
      'after',
      `
Examples:
  rocev2 disk serve --backend memory --size 1GiB
  rocev2 disk serve --backend file:/var/tmp/disk --size 10GiB --bind 192.0.2.7
  rocev2 disk serve --backend nbd://192.0.2.8/export`,
    )
    .action((options: ServeOptions & { readonly json?: true }) =>
      runServe(options, new Output(io, options.json === true)),
    );
}

function registerNbd(disk: Command, io: CliIo): void {
  const command = disk
    .command('nbd')
    .description(
      'An NBD server: qemu, nbdcopy, nbdfuse and fio find a disk there, that of a storage server or one of its own. It runs until ' +
        'Ctrl-C, then says what it did. SIGUSR2 breaks its RDMA connections, as a failing NIC would.',
    )
    .requiredOption('--listen <address>', 'unix:PATH or HOST:PORT', listenOption)
    .option('--connect <address>', 'the storage server')
    .option('--backend <store>', `a disk of its own instead: ${BACKEND_HELP}`)
    .option('--size <size>', SIZE_HELP, sizeOption)
    .option('--export <name>', 'the name clients ask for; the empty name finds the disk, too', 'disk0')
    .option(
      '--transport <name>',
      `${TRANSPORTS.join(', ')}; auto is RDMA, and TCP while that fails`,
      choiceOption(TRANSPORTS),
      'auto',
    )
    .option(
      '--hold-down <time>',
      'after a failure, leave RDMA alone for this time (default: 10s, and longer)',
      durationOption,
    );
  addTelemetryOption(addRdmaOptions(command))
    .option('--json', 'print one JSON document at the end')
    .addHelpText(
      'after',
      `
Examples:
  rocev2 disk nbd --connect 127.0.0.1 --listen unix:/tmp/disk.sock
  rocev2 disk nbd --backend file:/var/tmp/disk --size 10GiB --listen 127.0.0.1:10809
  nbdinfo 'nbd+unix:///?socket=/tmp/disk.sock'`,
    )
    .action((options: NbdGatewayOptions & { readonly json?: true }) =>
      runNbdGateway(options, new Output(io, options.json === true)),
    );
}

function registerBench(disk: Command, io: CliIo): void {
  const command = disk
    .command('bench')
    .description(
      'Measure IOPS, latency and CPU time of a disk over RDMA and over TCP, side by side. Without HOST it starts a server with a disk in memory, ' +
        'whose CPU time is then counted, too.',
    )
    .argument('[host]', 'a storage server; what its disk holds is overwritten')
    .addOption(
      optionWithDefault(
        '--transports <list>',
        BENCH_TRANSPORTS.join(', '),
        listOption(choiceOption(BENCH_TRANSPORTS)),
        BENCH_TRANSPORTS.join(),
      ),
    )
    .option('--nbd <uri>', 'measure an NBD export beside them; what it holds is overwritten')
    .addOption(
      optionWithDefault('--ops <list>', BENCH_OPS.join(', '), listOption(choiceOption(BENCH_OPS)), BENCH_OPS.join()),
    )
    .addOption(optionWithDefault('--blocks <list>', 'sizes of a request', listOption(blockOption), '8KiB,1MiB'))
    .addOption(optionWithDefault('--depths <list>', 'requests under way', listOption(countOption), '1,16,32'))
    .addOption(optionWithDefault('-D, --duration <time>', 'of one run', durationOption, '500ms'))
    .option('--reps <n>', 'runs, of which the median counts', countOption, 3)
    .addOption(optionWithDefault('--size <size>', 'of the disk in memory', sizeOption, '256MiB'));
  addRdmaOptions(command)
    .option('--json', 'print one JSON document')
    .addHelpText(
      'after',
      `
Examples:
  rocev2 disk bench
  rocev2 disk bench 192.0.2.7 --blocks 4KiB --depths 1,8,64 -D 2s
  rocev2 disk bench --nbd 'nbd+unix:///?socket=/tmp/nbdkit.sock' --json`,
    )
    .action((host: string | undefined, options: BenchOptions & { readonly json?: true }) =>
      runBench(host, options, new Output(io, options.json === true)),
    );
}

function blockOption(text: string): number {
  const bytes = sizeOption(text);
  if (bytes > 0 && bytes % 512 === 0) return bytes;
  throw new InvalidArgumentError('a block has a multiple of 512 bytes.');
}

const listenOption = textOption(parseSocketAddress);
