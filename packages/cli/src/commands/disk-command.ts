import {
  addPlanOptions,
  addRdmaOptions,
  addTelemetryOption,
  alternatives,
  type CliIo,
  choiceOption,
  countOption,
  durationOption,
  listOption,
  optionWithDefault,
  positiveDurationOption,
  printing,
  sizeOption,
  textOption,
} from '@rocev2/command';
import { addBackendOptions } from '@rocev2/nvme/internal';
import type { Command } from 'commander';
import { formatNs, parseDurationNs, RoceError } from 'rocev2/internal/core';
import { uuidBytes, uuidText } from 'rocev2/internal/disk';
import { parseSocketAddress } from 'rocev2/internal/nbd';
import { LEASE_NS_MIN } from 'rocev2/internal/storage-rpc';
import { parseAdvertised } from '../disk/advertise.js';
import { BENCH_TRANSPORTS, runBench } from '../disk/bench.js';
import { type DiskEntry, parseDiskEntry } from '../disk/disk-entries.js';
import { addLimitOptions } from '../disk/limit-options.js';
import { runCreate, runList, runRemove, runResize, type WrittenDisk } from '../disk/manage.js';
import { runNbdGateway } from '../disk/nbd-gateway.js';
import { TRANSPORTS } from '../disk/remote-disk.js';
import { runServe } from '../disk/serve.js';
import { addTlsOptions } from '../disk/tls-options.js';

const BACKEND_HELP = 'memory, file:PATH, nbd:URI, stream:NAME@MANAGER, nvme+tcp://HOST/NQN or nvme+rdma://HOST/NQN';

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
  registerManagement(disk, io);
}

function registerServe(disk: Command, io: CliIo): void {
  const command = disk
    .command('serve')
    .description('Run a storage server. Clients use its disks over RDMA or TCP. It runs until Ctrl-C.')
    .option('--backend <store>', `its only disk, without a name: ${BACKEND_HELP}`)
    .option(
      '--disk <name=store>',
      'a disk with a name; may be repeated. Append options, separated by commas: ,read-only ,create ,size=10GiB ,provision=thick ' +
        ',table-memory=1GiB ,scrub=10MiB ,iops=5000 ,bandwidth=100MiB',
      collectDisks,
    )
    .option(
      '--config <file>',
      'a JSON file of disks with names; disk create, resize and rm change it (docs/how-to/serve-a-disk.md)',
    )
    .addOption(
      optionWithDefault(
        '--lease <time>',
        'a client that is silent for this time may lose its disk to another client',
        leaseOption,
        '10s',
      ),
    );
  command.option(
    '--advertise <address>',
    "HOST or HOST:PORT at which gateways reach this server, for the manager of 'rocev2 extents' (default: the address of --bind)",
    textOption(parseAdvertised),
  );
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
  rocev2 disk serve --backend nbd://192.0.2.8/export
  rocev2 disk serve --backend stream:vol@192.0.2.8         # a disk of 'rocev2 extents'
  rocev2 disk serve --disk db=file:/srv/db,size=100GiB --disk iso=file:/srv/install.iso,read-only
  rocev2 disk serve --config /etc/rocev2/disks.json --bind 192.0.2.7`,
    )
    .action(printing(io, runServe));
}

function registerNbd(disk: Command, io: CliIo): void {
  const command = disk
    .command('nbd')
    .description(
      'Run an NBD server for qemu, nbdcopy, nbdfuse, fio and others. It exports the disk of a storage server, or a local backend. It ' +
        'runs until Ctrl-C, then prints its counters. SIGUSR2 breaks its RDMA connections, as a failing NIC does.',
    )
    .requiredOption('--listen <address>', 'unix:PATH or HOST:PORT', listenOption)
    .option(
      '--connect <address>',
      'the storage server; comma-separated servers between which the disk moves; or stream:NAME@MANAGER, whose manager knows the server',
    )
    .option('--disk <name>', 'name of the disk on the server (default: the only one)')
    .option('--read-only', 'clients can only read; another gateway may write')
    .option('--shared', 'also let other gateways with --shared write (default: only this gateway)')
    .option('--standby', 'wait while another gateway writes to the disk, and take over when it exits or fails')
    .option('--backend <store>', `a local disk instead of --connect: ${BACKEND_HELP}`)
    .option('--export <name>', 'export name; the empty name also selects it', 'disk0')
    .option('--clients <n>', 'most clients at a time, up to 1024 (default: 64)', countOption)
    .option(
      '--transport <name>',
      `${alternatives(TRANSPORTS)}; auto uses RDMA, and TCP while RDMA fails`,
      choiceOption(TRANSPORTS),
      'auto',
    )
    .option(
      '--hold-down <time>',
      'do not retry RDMA for this time after a failure (default: 10s, doubled by each further failure)',
      durationOption,
    )
    .option(
      '--give-up <time>',
      'fail requests when the server has been unreachable for this time, until it returns (default: wait indefinitely)',
      positiveDurationOption,
    )
    .option('--uuid <uuid>', 'accept only the disk with this UUID, which the server prints when it starts', uuidOption);
  addBackendOptions(addTlsOptions(command));
  addTelemetryOption(addRdmaOptions(addLimitOptions(command)))
    .option('--json', 'print one JSON document at the end')
    .addHelpText(
      'after',
      `
Examples:
  rocev2 disk nbd --connect 127.0.0.1 --listen unix:/tmp/disk.sock
  rocev2 disk nbd --connect 192.0.2.7 --give-up 60s --listen unix:/tmp/disk.sock
  rocev2 disk nbd --connect 192.0.2.7 --disk db --standby --listen unix:/tmp/disk.sock
  rocev2 disk nbd --connect stream:vol@192.0.2.8 --listen unix:/tmp/disk.sock # the owner of a disk of 'rocev2 extents'
  rocev2 disk nbd --connect 192.0.2.7,192.0.2.8 --listen unix:/tmp/disk.sock
  rocev2 disk nbd --backend file:/var/tmp/disk --size 10GiB --listen 127.0.0.1:10809
  rocev2 disk nbd --connect 127.0.0.1 --listen 192.0.2.7:10809 --tls-certs /etc/pki/nbd --tls-verify-peer
  nbdinfo 'nbd+unix:///?socket=/tmp/disk.sock'`,
    )
    .action(printing(io, runNbdGateway));
}

function registerBench(disk: Command, io: CliIo): void {
  const command = disk
    .command('bench')
    .description(
      'Compare IOPS, latency and CPU time of a disk over RDMA and over TCP. Without HOST it starts a server with a disk in memory, ' +
        'whose CPU time counts.',
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
    .action(printing(io, runBench));
}

function registerManagement(disk: Command, io: CliIo): void {
  const add = (name: string, description: string, example: string): Command =>
    disk
      .command(name)
      .description(description)
      .option('--server <host:port>', 'the server, if several servers of this user run on this host')
      .option('--json', 'print one JSON document')
      .addHelpText('after', `\nExamples:\n  rocev2 disk ${example}`);
  add('ls', 'List the named disks of all storage servers of this user on this host.', 'ls').action(
    printing(io, runList),
  );
  add('create', 'Add a disk to a running storage server.', 'create db=file:/srv/db,size=100GiB')
    .argument('<name=store>', "the disk, as for 'disk serve --disk'", textOption(parseWithText))
    .action(printing(io, runCreate));
  add('resize', 'Enlarge a file-backed disk of a running storage server.', 'resize db 200GiB')
    .argument('<name>', 'the disk')
    .argument('<size>', 'its new size', sizeOption)
    .action(printing(io, runResize));
  add('rm', 'Remove a disk from a running storage server. Its file is kept.', 'rm db')
    .argument('<name>', 'the disk')
    .option('--force', 'remove the disk even while a client is writing')
    .action(printing(io, runRemove));
}

function parseWithText(text: string): WrittenDisk {
  return { text, entry: parseDiskEntry(text) };
}

const diskOption = textOption(parseDiskEntry);
const collectDisks = (text: string, before: readonly DiskEntry[] = []): DiskEntry[] => [...before, diskOption(text)];

const listenOption = textOption(parseSocketAddress);
const leaseOption = textOption((text) => {
  const ns = parseDurationNs(text);
  if (ns >= LEASE_NS_MIN) return ns;
  throw new RoceError('ERR_ROCE_OUT_OF_RANGE', `a lease of ${formatNs(ns)} is too short`, 'give at least 5s');
});
const uuidOption = textOption((text) => uuidText(uuidBytes(text)));
