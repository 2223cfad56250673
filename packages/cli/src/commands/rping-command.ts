/** `rocev2 rping`: a peer of rping (rdma-core, librdmacm/examples/rping.c). */

import {
  addressOption,
  type CliIo,
  CommandFailure,
  countOption,
  defineDocument,
  EXIT_FAILED,
  EXIT_INTERRUPTED,
  EXIT_VERIFICATION_FAILED,
  endingInTime,
  type FrameFlags,
  type FrameWire,
  frameDeviceOptions,
  frameOption,
  framePortOption,
  linger,
  linkMtuOption,
  localAddressTowards,
  type Output,
  type PingOptions,
  portOption,
  printing,
  RpingEnd,
  SIZE_MAX_BYTES,
  SIZE_MIN_BYTES,
  sizeOption,
  type Tally,
  watched,
  whileListening,
} from '@rocev2/command';
import { type Command, Option } from 'commander';
import { acceptConcurrently, ConnectionManager } from 'rocev2/internal/cm';
import { NS_PER_S, RoceError } from 'rocev2/internal/core';
import { nowNs } from 'rocev2/internal/driver';
import type { IpAddress } from 'rocev2/internal/packet';
import { openDevice } from 'rocev2/internal/verbs';
import type { PingResult } from '../pingpong-parts.js';
import { addStockFlags, RPING_FLAGS } from '../stock-flags.js';

const RPING_DOCUMENT = defineDocument<PingResult>('rping');

const DEFAULT_PORT = 7174;
const DEFAULT_SIZE_BYTES = 64;
/** A client that is gone is not waited for as long as Linux would. */
const TIMING = { maxRetries: 4 };
/** A server has buffers of 128 KiB for each. */
const LIMITS = { halfOpen: 128, halfOpenPerAddress: 32 };

interface RpingOptions extends PingOptions {
  readonly client?: boolean;
  readonly address?: IpAddress;
  readonly port: number;
  readonly count?: number;
  readonly bind?: IpAddress;
  readonly frame?: FrameWire;
  readonly framePort?: number;
  readonly linkMtu?: number;
}

export function register(program: Command, io: CliIo): void {
  const command = program.enablePositionalOptions().command('rping');
  addStockFlags(command, RPING_FLAGS, io)
    .description('Ping over rdma_cm with SEND, RDMA READ and RDMA WRITE. The peer is rping or another rocev2 rping.')
    .addOption(new Option('-s, --server', 'be the server: wait for a client and answer it').conflicts('client'))
    .addOption(new Option('-c, --client', 'be the client: ping a server'))
    .requiredOption('-a, --address <address>', 'the server (with -s: the address to listen on)', addressOption)
    .option('-p, --port <port>', 'rdma_cm port', portOption, DEFAULT_PORT)
    .option(
      '-C, --count <n>',
      'number of pings (default: until Ctrl-C); a server fails if there were fewer',
      countOption,
    )
    .option('-S, --size <size>', 'ping size, 23 to 65535 bytes', sizeOption, DEFAULT_SIZE_BYTES)
    .option('-v, --verbose', 'print the text of every ping')
    .option('-V, --validate', 'check the contents of every ping')
    .option('--bind <address>', 'client: RoCE address of this side (default: from the routing table)', addressOption)
    .addOption(frameOption())
    .addOption(framePortOption())
    .addOption(linkMtuOption())
    .option('--json', 'print one JSON document')
    .addHelpText(
      'after',
      `
Examples:
  rocev2 rping -s -a 127.0.0.2 -V
  rocev2 rping -c -a 127.0.0.2 --bind 127.0.0.1 -C 1000 -V
  rocev2 rping -c -a 10.77.0.2 --bind 10.77.0.1 --frame 127.0.0.1:6002 -C 10     # a port of rocev2 switch`,
    )
    .action(printing(io, rping));
}

async function rping(options: RpingOptions, output: Output): Promise<void> {
  const { size, server, client } = options;
  if (size < SIZE_MIN_BYTES || size > SIZE_MAX_BYTES) {
    throw new RoceError(
      'ERR_ROCE_OUT_OF_RANGE',
      `a ping cannot have ${size} bytes`,
      `give ${SIZE_MIN_BYTES} to ${SIZE_MAX_BYTES}`,
    );
  }
  if (server !== true && client !== true) throw new RoceError('ERR_ROCE_INVALID_ARGUMENT', 'give -s or -c');
  const wire = await frameDeviceOptions(wireOf(options));
  const local = server === true ? options.address! : (options.bind ?? (await localAddressTowards(options.address!)));
  await using device = await openDevice({ address: local.text, ...wire });
  await using cm = await ConnectionManager.open(device, { timing: TIMING, limits: LIMITS });
  const tally = await (server === true ? serve : ping)(cm, options, output);
  output.line(`${tally.pings} pings of ${size} bytes in ${tally.seconds.toFixed(2)} seconds`);
  output.document(RPING_DOCUMENT, {
    role: server === true ? 'server' : 'client',
    peer: tally.peer.text,
    iterations: tally.pings,
    sizeBytes: size,
    seconds: tally.seconds,
    verified: options.validate === true && tally.faults === 0,
  });
  if (tally.faults > 0) throw new CommandFailure(EXIT_VERIFICATION_FAILED, `${tally.faults} pings had wrong data`);
  output.throwIfInterrupted();
  if (tally.pings < (options.count ?? 0)) {
    throw new CommandFailure(EXIT_FAILED, `the client ended after ${tally.pings} of ${options.count} pings`);
  }
}

function wireOf({ server, address, bind, frame, framePort, linkMtu }: RpingOptions): FrameFlags {
  const own = server === true ? address : bind;
  return {
    ...(own !== undefined && { bind: own }),
    ...(frame !== undefined && { frame }),
    ...(framePort !== undefined && { framePort }),
    ...(linkMtu !== undefined && { linkMtu }),
  };
}

async function serve(cm: ConnectionManager, options: RpingOptions, output: Output): Promise<Tally> {
  const { interrupted } = output.io;
  const makeEnd = () => RpingEnd.create(cm.device, options);
  const accepted = whileListening(cm, cm.listen(options.port), output, (listener) =>
    acceptConcurrently(listener, 1, { makeEnd, responderResources: 1, initiatorDepth: 1 }),
  );
  const [{ connection, end }] = await accepted.catch((error) => {
    throw interrupted.aborted ? new CommandFailure(EXIT_INTERRUPTED) : error;
  });
  const tally: Tally = { peer: connection.remote, pings: 0, faults: 0, seconds: 0 };
  const startNs = nowNs();
  const hangUp = () => void connection.disconnect();
  interrupted.addEventListener('abort', hangUp, { once: true });
  const answered = () =>
    end.answer(tally, output).catch((error) => {
      if (interrupted.aborted) return false;
      throw error;
    });
  while (await endingInTime(answered(), interrupted)) tally.pings++;
  tally.seconds = (nowNs() - startNs) / NS_PER_S;
  await connection.disconnect();
  await linger();
  return tally;
}

async function ping(cm: ConnectionManager, options: RpingOptions, output: Output): Promise<Tally> {
  const { interrupted } = output.io;
  const end = await RpingEnd.create(cm.device, options);
  const connection = await cm.connect(options.address!, options.port, end.qp, {
    responderResources: 1,
    initiatorDepth: 1,
    signal: interrupted,
  });
  const tally: Tally = { peer: connection.remote, pings: 0, faults: 0, seconds: 0 };
  const startNs = nowNs();
  const pinging = watched(cm.device, new AbortController().signal, async (alive) => {
    while (tally.pings < (options.count ?? Number.POSITIVE_INFINITY) && !interrupted.aborted) {
      await end.ask(tally, output);
      tally.pings++;
      alive();
    }
  });
  await endingInTime(pinging, interrupted);
  tally.seconds = (nowNs() - startNs) / NS_PER_S;
  await connection.disconnect();
  return tally;
}
