/** `rocev2 disk`: disks over RDMA for every program that knows NBD. */

import type { Command } from 'commander';
import { uuidBytes, uuidText } from '../../storage-rpc/disk/disk-identity.js';
import { parseSocketAddress } from '../../storage-rpc/nbd/socket-address.js';
import { addBackendOptions } from '../disk/backend-options.js';
import { BENCH_TRANSPORTS, type BenchOptions, runBench } from '../disk/bench.js';
import { addPlanOptions } from '../disk/bench-turns.js';
import { addLimitOptions } from '../disk/limit-options.js';
import { type NbdGatewayOptions, runNbdGateway } from '../disk/nbd-gateway.js';
import { addRdmaOptions, addTelemetryOption } from '../disk/rdma-options.js';
import { TRANSPORTS } from '../disk/remote-disk.js';
import { runServe, type ServeOptions } from '../disk/serve.js';
import {
  choiceOption,
  durationOption,
  listOption,
  optionWithDefault,
  positiveDurationOption,
  sizeOption,
  textOption,
} from '../options.js';
import { type CliIo, Output } from '../output.js';

const BACKEND_HELP = 'memory, file:PATH, nbd:URI, nvme+tcp://HOST/NQN or nvme+rdma://HOST/NQN';

/** Adds `rocev2 disk` to `program`. */
export function register(program: Command, io: CliIo): void {
  const disk = program
    .command('disk')
    .description('Serve disks over RDMA, and use them from any NBD client.')
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
    .description('Run a storage server. Clients use its disk over RDMA or TCP. It runs until Ctrl-C.')
    .requiredOption('--backend <store>', BACKEND_HELP);
  addBackendOptions(command);
  addTelemetryOption(addRdmaOptions(addLimitOptions(command)))
    .option('--json', 'print one JSON document at the end')
    .addHelpText(
      'after',
      `
Examples:
  rocev2 disk serve --backend memory --size 1GiB
  rocev2 disk serve --backend file:/var/tmp/disk --size 10GiB --bind 192.0.2.7
  rocev2 disk serve --backend file:/var/tmp/disk --size 10GiB --provision thick --scrub 10MiB
  rocev2 disk serve --backend file:/var/tmp/disk --iops 5000 --bandwidth 100MiB
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
      'Run an NBD server for qemu, nbdcopy, nbdfuse, fio and others. Its disk is that of a storage server, or its own. It runs until ' +
        'Ctrl-C, then prints its counters. SIGUSR2 breaks its RDMA connections, as a failing NIC would.',
    )
    .requiredOption('--listen <address>', 'unix:PATH or HOST:PORT', listenOption)
    .option('--connect <address>', 'the storage server')
    .option('--backend <store>', `its own disk instead: ${BACKEND_HELP}`)
    .option('--export <name>', 'export name; clients may also ask for the empty name', 'disk0')
    .option(
      '--transport <name>',
      `${TRANSPORTS.join(', ')}; auto uses RDMA, and TCP while RDMA fails`,
      choiceOption(TRANSPORTS),
      'auto',
    )
    .option(
      '--hold-down <time>',
      'do not retry RDMA for this time after a failure (default: 10s, longer after each failure)',
      durationOption,
    )
    .option(
      '--give-up <time>',
      'without a server for this time, requests fail until it is back (default: they wait for ever)',
      positiveDurationOption,
    )
    .option(
      '--uuid <uuid>',
      'refuse a server whose disk is not this one; it prints the UUID when it starts',
      uuidOption,
    );
  addBackendOptions(command);
  addTelemetryOption(addRdmaOptions(addLimitOptions(command)))
    .option('--json', 'print one JSON document at the end')
    .addHelpText(
      'after',
      `
Examples:
  rocev2 disk nbd --connect 127.0.0.1 --listen unix:/tmp/disk.sock
  rocev2 disk nbd --connect 192.0.2.7 --give-up 60s --listen unix:/tmp/disk.sock
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
      'Compare IOPS, latency and CPU time of a disk over RDMA and over TCP. Without HOST it starts a server with a disk in memory ' +
        'and includes its CPU time.',
    )
    .argument('[host]', 'a storage server; its disk is OVERWRITTEN')
    .addOption(
      optionWithDefault(
        '--transports <list>',
        BENCH_TRANSPORTS.join(', '),
        listOption(choiceOption(BENCH_TRANSPORTS)),
        BENCH_TRANSPORTS.join(),
      ),
    )
    .option('--nbd <uri>', 'also measure an NBD export; it is OVERWRITTEN');
  addPlanOptions(command, '8KiB,1MiB', '1,16,32').addOption(
    optionWithDefault('--size <size>', 'size of the disk in memory', sizeOption, '256MiB'),
  );
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

const listenOption = textOption(parseSocketAddress);
const uuidOption = textOption((text) => uuidText(uuidBytes(text)));
