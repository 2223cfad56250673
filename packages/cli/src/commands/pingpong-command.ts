/**
 * `rocev2 pingpong`: SENDs of one size back and forth, as a peer of ibv_rc_, ibv_uc_ or ibv_ud_pingpong (rdma-core);
 * prints what they print.
 */

import { randomInt } from 'node:crypto';
import {
  type CliIo,
  CommandFailure,
  countOption,
  defineDocument,
  EXIT_FAILED,
  EXIT_VERIFICATION_FAILED,
  linger,
  mtuOption,
  type Output,
  portOption,
  printing,
  type Silence,
  sizeOption,
  watched,
} from '@rocev2/command';
import type { Command } from 'commander';
import {
  connectQueuePair,
  type Destination,
  type FixedChannel,
  initializeQueuePair,
  qpTypeOf,
  type TransportName,
} from 'rocev2/internal/cm';
import { NS_PER_S, RoceError } from 'rocev2/internal/core';
import { nowNs } from 'rocev2/internal/driver';
import { GRH_BYTES, type IpAddress, PSN_COUNT } from 'rocev2/internal/packet';
import {
  exchangeAsPingpongClient,
  exchangeAsPingpongServer,
  PINGPONG_RC_ATTRIBUTES,
  PINGPONG_TCP_PORT,
  type PingpongDestination,
} from 'rocev2/internal/stock-exchanges';
import {
  Access,
  type CompletionQueue,
  checkCompletion,
  type MemoryRegion,
  openDevice,
  type QueuePair,
  type RdmaDevice,
} from 'rocev2/internal/verbs';
import { expectTransport } from '../peer-transport.js';
import {
  addPingpongFlags,
  describeDestination,
  fillMessage,
  meetPingpongPeer,
  type PingpongFlags,
  type PingResult,
  reportPings,
} from '../pingpong-parts.js';
import { addStockFlags, PINGPONG_FLAGS } from '../stock-flags.js';
import { checkDatagramSize } from '../transfer/endpoint.js';
import { addTransportOption } from '../transfer/transport.js';

/** The fields of `pingpong --json`. */
interface PingpongResult extends PingResult {
  /** Transport of the queue pair. */
  readonly transport: 'rc' | 'uc' | 'ud';
}

const PINGPONG_DOCUMENT = defineDocument<PingpongResult>('pingpong');

const RECEIVES = 500;
const SIZE_DEFAULT_BYTES = 4096;
const SIZE_MAX_BYTES = 2 ** 30;
const LOST_AFTER_MS = 10_000;
/** A server that waits for more than one line prints nothing that would identify it. */
const SILENT_SERVER_MS = 2_000;
const SILENT_SERVER =
  'the server does not answer: if it is ibv_srq_pingpong, it waits for more; start ibv_rc_pingpong, ibv_uc_pingpong or ibv_ud_pingpong there, or rocev2 srq-pingpong here';

interface PingpongOptions extends PingpongFlags {
  readonly transport: TransportName;
  readonly mtu: number;
}

export function register(program: Command, io: CliIo): void {
  const command = program
    .command('pingpong')
    .description(
      'Send messages back and forth. The peer is ibv_rc_pingpong, ibv_uc_pingpong, ibv_ud_pingpong or another rocev2 pingpong.',
    )
    .argument('[host]', 'the server to connect to; leave it out to be the server')
    .option('-p, --port <port>', 'TCP port of the exchange', portOption, PINGPONG_TCP_PORT)
    .option('-s, --size <size>', 'message size (default: 4096; ud: the path MTU)', sizeOption)
    .option('-m, --mtu <bytes>', 'path MTU', mtuOption, 1024)
    .option('-n, --iters <n>', 'messages each way', countOption, 1000);
  addTransportOption(addPingpongFlags(command), 'the peer is ibv_rc_pingpong, ibv_uc_pingpong or ibv_ud_pingpong')
    .addHelpText(
      'after',
      `
Size, MTU, transport and number of messages must be the same on both sides.
Stock tools need -g with the index of a RoCE v2 GID. uc and ud do not
retransmit: the run ends with the first lost message.

Examples:
  rocev2 pingpong --bind 127.0.0.2
  rocev2 pingpong 127.0.0.2 --bind 127.0.0.1 -s 64KiB -c
  rocev2 pingpong 192.0.2.7 --transport ud -s 1024       # the server runs: ibv_ud_pingpong -g GID_INDEX -s 1024`,
    )
    .action(printing(io, pingpong));
  addStockFlags(command, PINGPONG_FLAGS, io);
}

async function pingpong(
  host: string | undefined,
  given: Omit<PingpongOptions, 'size'> & { readonly size?: number },
  output: Output,
): Promise<void> {
  const { transport, mtu, size = transport === 'ud' ? mtu : SIZE_DEFAULT_BYTES } = given;
  const options = { ...given, size };
  if (options.size > SIZE_MAX_BYTES) throw new RoceError('ERR_ROCE_OUT_OF_RANGE', 'a message can have at most 1 GiB');
  if (options.transport === 'ud') checkDatagramSize(options.size, options.mtu);
  const { interrupted } = output.io;
  const channel = await meetPingpongPeer(host, options.port, output);
  await using device = await openDevice({ address: (options.bind ?? channel.localAddress).text });
  const player = await Player.create(device, options);
  const { peer, seconds } = await expectTransport(device, options.transport, async () => ({
    peer: await player.connect(channel, host === undefined, options.mtu, output),
    seconds: await watched(device, interrupted, (alive) => player.play(host !== undefined, alive), player.silence),
  }));
  await linger();
  const { faults } = player;
  const result = reportPings(options, { host, peer, seconds, faults }, output);
  output.document(PINGPONG_DOCUMENT, { ...result, transport: options.transport });
  if (faults > 0)
    throw new CommandFailure(EXIT_VERIFICATION_FAILED, `invalid data in ${faults} of ${options.iters} messages`);
}

class Player {
  faults = 0;
  #received = 0;
  readonly #transport: TransportName;
  readonly #qp: QueuePair;
  readonly #cq: CompletionQueue;
  readonly #mr: MemoryRegion;
  readonly #address: IpAddress;
  readonly #size: number;
  readonly #iterations: number;
  readonly #check: boolean;
  readonly #grhBytes: number;
  #destination: Destination = {};

  private constructor(
    device: RdmaDevice,
    qp: QueuePair,
    cq: CompletionQueue,
    mr: MemoryRegion,
    options: PingpongOptions,
  ) {
    this.#transport = options.transport;
    this.#address = device.address;
    this.#qp = qp;
    this.#cq = cq;
    this.#mr = mr;
    this.#size = options.size;
    this.#iterations = options.iters;
    this.#check = options.chk === true;
    this.#grhBytes = options.transport === 'ud' ? GRH_BYTES : 0;
  }

  static async create(device: RdmaDevice, options: PingpongOptions): Promise<Player> {
    const cq = await device.createCq(RECEIVES + 1);
    const pd = await device.createPd();
    const mr = await pd.regMr(2 * options.size + GRH_BYTES, Access.LOCAL_WRITE);
    const qp = await pd.createQp({
      type: qpTypeOf(options.transport),
      sendCq: cq,
      maxSendWr: 1,
      maxRecvWr: RECEIVES,
    });
    await initializeQueuePair(qp);
    const player = new Player(device, qp, cq, mr, options);
    fillMessage(player.#outgoing, player.#check);
    for (let i = 0; i < Math.min(RECEIVES, options.iters); i++) player.#postReceive();
    return player;
  }

  get silence(): Silence | undefined {
    if (this.#transport === 'rc') return undefined;
    const failure = () =>
      new CommandFailure(
        EXIT_FAILED,
        `nothing has arrived for ${LOST_AFTER_MS / 1000} s, after ${this.#received} of ${this.#iterations} messages: ` +
          `one was lost, and ${this.#transport.toUpperCase()} does not retransmit; or the peer has another transport`,
      );
    return { limitMs: LOST_AFTER_MS, failure };
  }

  get #outgoing(): Buffer {
    return this.#mr.bytes.subarray(0, this.#size);
  }

  get #incoming(): Buffer {
    const begin = this.#size + this.#grhBytes;
    return this.#mr.bytes.subarray(begin, begin + this.#size);
  }

  #postReceive(): void {
    this.#qp.postRecv({ sges: [this.#mr.sge(this.#size, this.#grhBytes + this.#size)] });
  }

  #send(): void {
    this.#qp.postSend({ opcode: 'SEND', sges: [this.#mr.sge(0, this.#size)], ...this.#destination });
  }

  async connect(channel: FixedChannel, isServer: boolean, pathMtu: number, output: Output): Promise<IpAddress> {
    const own = { qpn: this.#qp.qpn, psn: randomInt(PSN_COUNT), address: this.#address };
    output.line(`  local address:  ${describeDestination(own)}`);
    const prepare = async (peer: PingpongDestination) => {
      output.line(`  remote address: ${describeDestination(peer)}`);
      const terms = { psn: own.psn, pathMtu, reliable: PINGPONG_RC_ATTRIBUTES };
      this.#destination = await connectQueuePair(this.#qp, terms, peer);
    };
    if (isServer) return (await exchangeAsPingpongServer(channel, own, prepare)).address;
    const silence = setTimeout(() => output.note(SILENT_SERVER), SILENT_SERVER_MS);
    const peer = await exchangeAsPingpongClient(channel, own).finally(() => clearTimeout(silence));
    await prepare(peer);
    return peer.address;
  }

  async play(sendsFirst: boolean, alive: () => void): Promise<number> {
    const startNs = nowNs();
    let sent = 0;
    let posted = Math.min(RECEIVES, this.#iterations);
    let delivered = true;
    let turn = sendsFirst;
    while (sent < this.#iterations || this.#received < this.#iterations || !delivered) {
      if (turn && delivered && sent < this.#iterations) {
        this.#send();
        sent++;
        turn = false;
        delivered = false;
      }
      const { opcode } = checkCompletion(await this.#cq.next());
      alive();
      if (opcode === 'SEND') {
        delivered = true;
        continue;
      }
      this.#received++;
      turn = true;
      this.#verify();
      if (posted < this.#iterations) {
        this.#postReceive();
        posted++;
      }
    }
    return (nowNs() - startNs) / NS_PER_S;
  }

  #verify(): void {
    if (!this.#check) return;
    if (!this.#incoming.equals(this.#outgoing)) this.faults++;
    this.#incoming.fill(0); // Data of this message must not be mistaken for that of the next.
  }
}
