/** `rocev2 disk`: disks over RDMA for every program that knows NBD. */

import { type Command, InvalidArgumentError } from 'commander';
import { RoceError } from '../../core/errors.js';
import { parseSocketAddress, type SocketAddress } from '../../storage-rpc/nbd/socket-address.js';
import { type NbdGatewayOptions, runNbdGateway } from '../disk/nbd-gateway.js';
import { addRdmaOptions } from '../disk/rdma-options.js';
import { TRANSPORTS } from '../disk/remote-disk.js';
import { runServe, type ServeOptions } from '../disk/serve.js';
import { choiceOption, durationOption, sizeOption } from '../options.js';
import { type CliIo, Output } from '../output.js';

const BACKEND_HELP = 'memory, file:PATH or nbd:URI';
const SIZE_HELP = 'of a disk in memory or in a new file';

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
  rocev2 disk help nbd                            the options of a command`,
    );
  registerServe(disk, io);
  registerNbd(disk, io);
}

function registerServe(disk: Command, io: CliIo): void {
  const command = disk
    .command('serve')
    .description('A storage server: clients use its disk over RDMA, or over TCP. It runs until Ctrl-C.')
    .requiredOption('--backend <store>', BACKEND_HELP)
    .option('--size <size>', SIZE_HELP, sizeOption);
  addRdmaOptions(command)
    .option('--json', 'one JSON document on stdout, at the end')
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
    .option('--connect <address>', 'the IP address of a storage server')
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
  addRdmaOptions(command)
    .option('--json', 'one JSON document on stdout, at the end')
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

function listenOption(text: string): SocketAddress {
  try {
    return parseSocketAddress(text);
  } catch (error) {
    if (error instanceof RoceError) throw new InvalidArgumentError(`${error.message}.`);
    throw error;
  }
}
