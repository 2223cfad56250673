/** `rocev2 disk`: disks over RDMA for every program that knows NBD. */

import { type Command, InvalidArgumentError } from 'commander';
import { RoceError } from '../../core/errors.js';
import { parseSocketAddress, type SocketAddress } from '../../storage-rpc/nbd/socket-address.js';
import { type NbdGatewayOptions, runNbdGateway } from '../disk/nbd-gateway.js';
import { sizeOption } from '../options.js';
import { type CliIo, Output } from '../output.js';

export function register(program: Command, io: CliIo): void {
  const disk = program
    .command('disk')
    .description('Serve disks, and use them from any program that knows NBD.')
    .addHelpText(
      'after',
      `
Examples:
  rocev2 disk nbd --listen unix:/tmp/disk.sock --backend memory --size 1GiB
  rocev2 disk help nbd                            the options of a command`,
    );
  disk
    .command('nbd')
    .description(
      'An NBD server: qemu, nbdcopy, nbdfuse, fio and the kernel find a disk there. It runs until Ctrl-C, then says what it did.',
    )
    .requiredOption('--listen <address>', 'unix:PATH or HOST:PORT', listenOption)
    .requiredOption('--backend <store>', 'memory, file:PATH or nbd:URI')
    .option('--size <size>', 'of a disk in memory or in a new file', sizeOption)
    .option('--export <name>', 'the name clients ask for; the empty name finds the disk, too', 'disk0')
    .option('--json', 'one JSON document on stdout, at the end')
    .addHelpText(
      'after',
      `
Examples:
  rocev2 disk nbd --listen unix:/tmp/disk.sock --backend memory --size 1GiB
  rocev2 disk nbd --listen 127.0.0.1:10809 --backend file:/var/tmp/disk --size 10GiB
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
