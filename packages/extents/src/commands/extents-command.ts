/** `rocev2 extents`: streams of records that survive nodes. */

import {
  addHttpTelemetryOption,
  addNicOptions,
  addressOption,
  addSecureOptions,
  alternatives,
  type CliIo,
  choiceOption,
  countOption,
  durationOption,
  optionWithDefault,
  portOrAnyOption,
  printing,
  rangeOption,
  sizeOption,
  textOption,
} from '@rocev2/command';
import type { Command } from 'commander';
import { parseSizeBytes, RoceError } from 'rocev2/internal/core';
import { CODE_NAMES } from '../coding/erasure-code.js';
import { EXTENT_TRANSPORTS } from '../live/peer-connector.js';
import { runAccept } from './accept.js';
import { MANAGER_PORT, parseManagers } from './cluster.js';
import { runDiskClone, runDiskCreate, runDiskList, runDiskRemove, runDiskSnapshot } from './disk-commands.js';
import { parseEtcdPlace } from './etcd-place.js';
import { runRecover } from './recover.js';
import { runManager, runNode } from './serve.js';
import { runStatus } from './status.js';
import { runAppend, runList, runRead, runRemove } from './streams.js';
import { addTelemetryOption } from './telemetry.js';
import { runUndelete } from './undelete.js';
import { runUp } from './up.js';

const RECORD_BYTES_MAX = 4 << 20;
const NODES_MAX = 32;
const MANAGERS_MAX = 7;
const DOMAIN_MAX = 128;
/** How long programs that write and read streams wait for a manager. */
const WAIT = '10s';
const CODE_CHOICES = ['none', ...CODE_NAMES] as const;

const managerOption = textOption(parseManagers);

const etcdOption = textOption(parseEtcdPlace);

const recordOption = textOption((text) => {
  const bytes = parseSizeBytes(text);
  if (bytes >= 1 && bytes <= RECORD_BYTES_MAX) return bytes;
  throw new RoceError('ERR_ROCE_OUT_OF_RANGE', `a record of ${bytes} bytes`, '1 byte to 4MiB');
});

const journalSizeOption = optionWithDefault('--journal-size <size>', 'size of a new journal', sizeOption, '64MiB');

const extentNumber = rangeOption(1, Number.MAX_SAFE_INTEGER);
const listOfNumbers = (text: string, before: readonly number[] = []) => [...before, extentNumber(text)];

const keepDeletedOption = optionWithDefault(
  '--keep-deleted <time>',
  'how long files of deleted extents stay in quarantine',
  durationOption,
  '1h',
);

const domainOption = textOption((text) => {
  if (text !== '' && text.length <= DOMAIN_MAX) return text;
  throw new RoceError('ERR_ROCE_OUT_OF_RANGE', 'the name of a domain has 1 to 128 characters');
});

/** Adds `rocev2 extents` to `program`. */
export function register(program: Command, io: CliIo): void {
  const extents = program
    .command('extents')
    .description(
      'Store streams of records. A record is on three nodes before it is acknowledged; the cluster replaces the copies of failed nodes.',
    )
    .addHelpText(
      'after',
      `
Examples:
  rocev2 extents up --dir /tmp/cluster                # a manager and five nodes, as processes of this machine
  echo hello | rocev2 extents append log
  rocev2 extents read log
  rocev2 extents status
  rocev2 extents help append                          # the options of a command`,
    );
  registerUp(extents, io);
  registerManager(extents, io);
  registerNode(extents, io);
  registerStatus(extents, io);
  registerList(extents, io);
  registerAppend(extents, io);
  registerRead(extents, io);
  registerRemove(extents, io);
  registerUndelete(extents, io);
  registerAccept(extents, io);
  registerRecover(extents, io);
  registerDisk(extents, io);
}

function addTransportOption(command: Command): Command {
  return command.option(
    '--transport <name>',
    `${alternatives(EXTENT_TRANSPORTS)}; auto falls back to TCP for peers that RDMA cannot reach`,
    choiceOption(EXTENT_TRANSPORTS),
    'auto' as const,
  );
}

function addClusterOptions(command: Command, wait = '0s'): Command {
  command
    .addOption(
      optionWithDefault('--wait <time>', 'how long to wait for a manager that does not answer', durationOption, wait),
    )
    .addOption(
      optionWithDefault(
        '--manager <host:port>',
        'the manager, or comma-separated managers',
        managerOption,
        `127.0.0.1:${MANAGER_PORT}`,
      ),
    )
    .option('--bind <address>', 'IP address of this side (default: from the routing table)', addressOption);
  return addSecureOptions(addNicOptions(addTransportOption(command))).option('--json', 'print one JSON document');
}

function addManagerOptions(command: Command): Command {
  return command
    .option('-p, --port <port>', 'TCP port of the manager; 0: the system chooses', portOrAnyOption, MANAGER_PORT)
    .addOption(optionWithDefault('--bind <address>', 'IP address of this side', addressOption, '127.0.0.1'))
    .addOption(
      optionWithDefault(
        '--extent-size <size>',
        'size at which an extent is sealed and another is opened',
        sizeOption,
        '64MiB',
      ),
    )
    .option(
      '--code <name>',
      `erasure code of sealed extents: ${alternatives(CODE_CHOICES)}; rs-6-3 needs 9 nodes, lrc-12-2-2 needs 16`,
      choiceOption(CODE_CHOICES),
      'none' as const,
    )
    .addOption(
      optionWithDefault('--code-after <time>', 'time between sealing an extent and coding it', durationOption, '60s'),
    );
}

function registerUp(extents: Command, io: CliIo): void {
  const command = extents
    .command('up')
    .description('Start managers and nodes as processes of this machine. Ctrl-C stops them in order.')
    .requiredOption('--dir <path>', 'folder of the cluster, with one folder for the manager and one for each node')
    .option(
      '--nodes <n>',
      `number of nodes, 3 to ${NODES_MAX} (default: 5, or the number that the code needs)`,
      rangeOption(3, NODES_MAX),
    )
    .option(
      '--managers <n>',
      `number of managers, 1 to ${MANAGERS_MAX}; several need --metadata, and use every second port from --port up (default: 1)`,
      rangeOption(1, MANAGERS_MAX),
    )
    .option('--metadata <etcd:url>', 'keep the metadata of the managers in this running etcd', etcdOption)
    .option('--restart', 'restart processes that fail')
    .option('--journal <path>', 'folder of the journals, so that appends to all extents of a node share one sync')
    .addOption(journalSizeOption)
    .addOption(keepDeletedOption);
  addTelemetryOption(command, 'the cluster, and the RDMA devices of all processes,');
  addSecureOptions(addNicOptions(addTransportOption(addManagerOptions(command))))
    .option('--json', 'print one JSON document at the end')
    .addHelpText(
      'after',
      `
Examples:
  rocev2 extents up --dir /tmp/cluster
  rocev2 extents up --dir /tmp/cluster --nodes 7 --restart
  rocev2 extents up --dir /tmp/cluster --managers 3 --metadata etcd:http://127.0.0.1:2379
  rocev2 extents up --dir /tmp/cluster --estats       # 'rocev2 dashboard --attach' shows it
  rocev2 extents up --dir /tmp/cluster --journal /mnt/nvme/journals
  rocev2 extents up --dir /tmp/coded --code rs-6-3 --code-after 10s
  rocev2 extents up --dir /tmp/cluster --psk keys.psk # authenticated and encrypted packets; clients also need --psk`,
    )
    .action(printing(io, runUp));
}

function registerManager(extents: Command, io: CliIo): void {
  const command = extents
    .command('manager')
    .description('Run the manager of a cluster, which assigns extents to nodes. It runs until Ctrl-C.')
    .option('--dir <path>', 'metadata folder; an empty folder starts a new cluster')
    .option('--metadata <etcd:url>', 'keep metadata in etcd; managers that share it elect a leader', etcdOption);
  command.option('--recover', "the metadata is lost: wait for nodes and for 'rocev2 extents recover'");
  command.option('--trust-metadata', 'serve although fewer nodes than needed confirm that the metadata is the latest');
  addTelemetryOption(addHttpTelemetryOption(command), 'the cluster and the RDMA device');
  addSecureOptions(addNicOptions(addTransportOption(addManagerOptions(command))))
    .option('--json', 'print one JSON document at the end')
    .addHelpText(
      'after',
      `
Examples:
  rocev2 extents manager --dir /var/lib/extents/manager --bind 10.0.0.1 --estats
  rocev2 extents manager --metadata etcd:http://10.0.0.7:2379,http://10.0.0.8:2379 --bind 10.0.0.1
  rocev2 extents manager --metadata 'etcd:https://10.0.0.7:2379?ca=ca.pem&cert=manager.pem&key=manager-key.pem'
  rocev2 extents manager --metadata 'etcd:https://10.0.0.7:2379?ca=ca.pem&user=extents&password=password.txt'`,
    )
    .action(printing(io, runManager));
}

function registerNode(extents: Command, io: CliIo): void {
  const command = extents
    .command('node')
    .description('Run a node, which stores extents in a folder. It runs until Ctrl-C.')
    .requiredOption('--dir <path>', 'folder of its extents; an empty folder makes a new node')
    .option('--journal <path>', 'file or block device of the journal, so that appends to all extents share one sync')
    .addOption(journalSizeOption)
    .addOption(keepDeletedOption)
    .requiredOption('--join <host:port>', 'the manager, or comma-separated managers', managerOption)
    .option('--trust-folder', 'join although the folder is an older copy, or without its journal')
    .option('--domain <name>', 'fault domain, whose nodes may fail together (default: a separate domain)', domainOption)
    .option('-p, --port <port>', 'TCP port; 0: the system chooses', portOrAnyOption, 0)
    .option(
      '--bind <address>',
      'IP address at which others reach this node (default: from the routing table)',
      addressOption,
    );
  addTelemetryOption(addHttpTelemetryOption(command), 'the RDMA device');
  addSecureOptions(addNicOptions(addTransportOption(command)))
    .option('--json', 'print one JSON document at the end')
    .addHelpText(
      'after',
      `
Examples:
  rocev2 extents node --dir /tmp/node6 --join 127.0.0.1:${MANAGER_PORT}
  rocev2 extents node --dir /var/lib/extents/node --join 10.0.0.1 --bind 10.0.0.2 --domain rack2
  rocev2 extents node --dir /var/lib/extents/node --join 10.0.0.1 --journal /dev/nvme0n1p3`,
    )
    .action(printing(io, runNode));
}

function registerStatus(extents: Command, io: CliIo): void {
  const command = extents
    .command('status')
    .description('Print nodes, streams, extents by state, repairs and space.')
    .option('--watch', 'repeat every second until Ctrl-C; with --json, one document each time');
  addClusterOptions(command)
    .addHelpText('after', '\nExamples:\n  rocev2 extents status\n  rocev2 extents status --watch')
    .action(printing(io, runStatus));
}

function registerList(extents: Command, io: CliIo): void {
  addClusterOptions(extents.command('ls').description('Print all streams.'))
    .addHelpText('after', '\nExamples:\n  rocev2 extents ls')
    .action(printing(io, runList));
}

function registerAppend(extents: Command, io: CliIo): void {
  const command = extents
    .command('append')
    .description(
      'Append a file to a stream, which is created if it does not exist. All records are durable on three nodes when the command ends.',
    )
    .argument('<stream>', 'its name: letters, digits, dots, underscores and hyphens')
    .argument('[file]', 'file to append; -: standard input', '-')
    .addOption(optionWithDefault('--record <size>', 'longest record, at most 4MiB', recordOption, '1MiB'))
    .option('--lines', 'append each line as a separate record')
    .option('--take-over', 'become the owner although another client holds a lease; that client is fenced');
  addClusterOptions(command, WAIT)
    .addHelpText(
      'after',
      `
Examples:
  echo hello | rocev2 extents append log
  rocev2 extents append log events.txt --lines`,
    )
    .action(printing(io, runAppend));
}

function registerRead(extents: Command, io: CliIo): void {
  const command = extents
    .command('read')
    .description('Write the bytes of a stream to standard output; with --json, write its records in base64.')
    .argument('<stream>', 'its name')
    .option('--from <n>', 'first record to read, counted from 0', rangeOption(0, Number.MAX_SAFE_INTEGER), 0)
    .option('-n, --count <n>', 'exit after this many records', countOption);
  addClusterOptions(command, WAIT)
    .addHelpText('after', '\nExamples:\n  rocev2 extents read log\n  rocev2 extents read log --from 100 -n 10 --json')
    .action(printing(io, runRead));
}

function registerRemove(extents: Command, io: CliIo): void {
  addClusterOptions(
    extents
      .command('rm')
      .description('Delete a stream. Nodes release its space within seconds.')
      .argument('<stream>', 'its name'),
  )
    .addHelpText('after', '\nExamples:\n  rocev2 extents rm log')
    .action(printing(io, runRemove));
}

function registerUndelete(extents: Command, io: CliIo): void {
  const command = extents
    .command('undelete')
    .description('Undo the deletion of a stream or disk. Nodes keep deleted extents for the time of --keep-deleted.')
    .argument('<stream>', 'its name')
    .option('--disk', 'it is a disk');
  addClusterOptions(command)
    .addHelpText('after', '\nExamples:\n  rocev2 extents undelete log\n  rocev2 extents undelete vol --disk')
    .action(printing(io, runUndelete));
}

function registerRecover(extents: Command, io: CliIo): void {
  const command = extents
    .command('recover')
    .description(
      'Rebuild outdated metadata of a manager from the nodes that answer now, and print the certain and the uncertain entries.',
    );
  addClusterOptions(command)
    .addHelpText('after', '\nExamples:\n  rocev2 extents recover')
    .action(printing(io, runRecover));
}

function registerAccept(extents: Command, io: CliIo): void {
  const command = extents
    .command('accept')
    .description(
      "Seal extents that wait for a decision ('extents status' lists them) with the replicas that answer now. Records that only other nodes have are lost.",
    )
    .argument('[extents...]', 'their numbers (default: all that wait)', listOfNumbers);
  addClusterOptions(command)
    .addHelpText('after', '\nExamples:\n  rocev2 extents status\n  rocev2 extents accept 17')
    .action(printing(io, runAccept));
}

function registerDisk(extents: Command, io: CliIo): void {
  const disk = extents
    .command('disk')
    .description(
      "Manage disks over streams, which survive failures of nodes. 'disk serve', 'disk nbd' and 'nvme target' use them as stream:NAME@MANAGER.",
    )
    .addHelpText(
      'after',
      `
Examples:
  rocev2 extents disk create vol --size 10GiB
  rocev2 disk nbd --backend stream:vol --listen unix:/tmp/vol.sock
  rocev2 extents disk snapshot vol vol-monday
  rocev2 extents disk ls`,
    );
  addClusterOptions(
    disk
      .command('create')
      .description('Create an empty disk. It uses space when it is written.')
      .argument('<name>', '1 to 63 letters, digits, dots, underscores and hyphens')
      .requiredOption('--size <size>', 'its size, a multiple of 512 bytes, at most 1TiB', sizeOption),
  )
    .addHelpText('after', '\nExamples:\n  rocev2 extents disk create vol --size 10GiB')
    .action(printing(io, runDiskCreate));
  addClusterOptions(disk.command('ls').description('Print all disks, snapshots and clones.'))
    .addHelpText('after', '\nExamples:\n  rocev2 extents disk ls')
    .action(printing(io, runDiskList));
  addClusterOptions(
    disk
      .command('snapshot')
      .description('Create a snapshot of a disk, which may be in use. Both share their data.')
      .argument('<disk>', 'its name')
      .argument('<snapshot>', 'name of the snapshot'),
  )
    .addHelpText('after', '\nExamples:\n  rocev2 extents disk snapshot vol vol-monday')
    .action(printing(io, runDiskSnapshot));
  addClusterOptions(
    disk
      .command('clone')
      .description('Create a writable copy of a disk or snapshot. Both share the data that neither overwrites.')
      .argument('<disk>', 'its name')
      .argument('<clone>', 'name of the new disk'),
  )
    .addHelpText('after', '\nExamples:\n  rocev2 extents disk clone vol-monday vol2')
    .action(printing(io, runDiskClone));
  addClusterOptions(
    disk
      .command('rm')
      .description('Delete a disk. Data that snapshots and clones share with it is kept.')
      .argument('<name>', 'its name'),
  )
    .addHelpText('after', '\nExamples:\n  rocev2 extents disk rm vol-monday')
    .action(printing(io, runDiskRemove));
}
