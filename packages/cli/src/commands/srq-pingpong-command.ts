/** `rocev2 srq-pingpong`: a peer of ibv_srq_pingpong (rdma-core, libibverbs/examples/srq_pingpong.c). */

import { randomInt } from 'node:crypto';
import {
  type CliIo,
  CommandFailure,
  countOption,
  defineDocument,
  EXIT_VERIFICATION_FAILED,
  linger,
  mtuOption,
  type Output,
  portOption,
  printing,
  rangeOption,
  sizeOption,
  watched,
} from '@rocev2/command';
import type { Command } from 'commander';
import { connectQueuePair, type FixedChannel, initializeQueuePair } from 'rocev2/internal/cm';
import { NS_PER_S } from 'rocev2/internal/core';
import { nowNs } from 'rocev2/internal/driver';
import { type IpAddress, PSN_COUNT } from 'rocev2/internal/packet';
import {
  exchangeAsSrqClient,
  exchangeAsSrqServer,
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
  type SharedReceiveQueue,
} from 'rocev2/internal/verbs';
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

/** The fields of `srq-pingpong --json`. */
interface SrqPingpongResult extends PingResult {
  /** Number of queue pairs that share the receive queue. */
  readonly queuePairs: number;
}

const SRQ_PINGPONG_DOCUMENT = defineDocument<SrqPingpongResult>('srq-pingpong');

const QUEUE_PAIRS_DEFAULT = 16;
const QUEUE_PAIRS_MAX = 127;
const RECEIVES_DEFAULT = 500;
const RECEIVES_MAX = 16_384;
const SIZE_DEFAULT_BYTES = 4096;

interface SrqPingpongOptions extends PingpongFlags {
  readonly mtu: number;
  readonly qp: number;
  readonly rxDepth: number;
}

export function register(program: Command, io: CliIo): void {
  const command = program
    .command('srq-pingpong')
    .description(
      'Send messages back and forth over queue pairs that share a receive queue. The peer is ibv_srq_pingpong or another rocev2 srq-pingpong.',
    )
    .argument('[host]', 'the server to connect to; leave it out to be the server')
    .option('-p, --port <port>', 'TCP port of the exchange', portOption, PINGPONG_TCP_PORT)
    .option('-s, --size <size>', 'message size', sizeOption, SIZE_DEFAULT_BYTES)
    .option('-m, --mtu <bytes>', 'path MTU', mtuOption, 1024)
    .option('-q, --qp <n>', 'queue pairs', rangeOption(1, QUEUE_PAIRS_MAX), QUEUE_PAIRS_DEFAULT)
    .option(
      '-r, --rx-depth <n>',
      'receives in the shared receive queue',
      rangeOption(1, RECEIVES_MAX),
      RECEIVES_DEFAULT,
    )
    .option('-n, --iters <n>', 'messages each way, over all queue pairs together', countOption, 1000);
  addPingpongFlags(command)
    .addHelpText(
      'after',
      `
Size, MTU and the numbers of queue pairs and messages must be the same on both
sides. Stock ibv_srq_pingpong needs -g with the index of a RoCE v2 GID.

Examples:
  rocev2 srq-pingpong --bind 127.0.0.2
  rocev2 srq-pingpong 127.0.0.2 --bind 127.0.0.1 -q 4 -c
  rocev2 srq-pingpong 192.0.2.7 -n 500                   # the server runs: ibv_srq_pingpong -g GID_INDEX -n 500`,
    )
    .action(printing(io, srqPingpong));
  addStockFlags(command, PINGPONG_FLAGS, io);
}

async function srqPingpong(host: string | undefined, options: SrqPingpongOptions, output: Output): Promise<void> {
  const { interrupted } = output.io;
  const channel = await meetPingpongPeer(host, options.port, output);
  await using device = await openDevice({ address: (options.bind ?? channel.localAddress).text });
  const players = await Players.create(device, options);
  const peer = await players.connect(channel, host === undefined, output);
  const seconds = await watched(device, interrupted, (alive) => players.play(host !== undefined, alive));
  await linger();
  const { faults } = players;
  const result = reportPings(options, { host, peer, seconds, faults }, output);
  output.document(SRQ_PINGPONG_DOCUMENT, { ...result, queuePairs: options.qp });
  if (faults > 0) throw new CommandFailure(EXIT_VERIFICATION_FAILED, `invalid data in ${faults} messages`);
}

interface Player {
  readonly qp: QueuePair;
  readonly psn: number;
  isDelivered: boolean;
  hasReceived: boolean;
}

class Players {
  faults = 0;
  readonly #options: SrqPingpongOptions;
  readonly #address: IpAddress;
  readonly #cq: CompletionQueue;
  readonly #srq: SharedReceiveQueue;
  readonly #mr: MemoryRegion;
  readonly #byQpn: ReadonlyMap<number, Player>;

  private constructor(
    options: SrqPingpongOptions,
    device: RdmaDevice,
    { cq, srq, mr }: { cq: CompletionQueue; srq: SharedReceiveQueue; mr: MemoryRegion },
    players: readonly Player[],
  ) {
    this.#options = options;
    this.#address = device.address;
    this.#cq = cq;
    this.#srq = srq;
    this.#mr = mr;
    this.#byQpn = new Map(players.map((player) => [player.qp.qpn, player]));
    fillMessage(this.#outgoing, options.chk === true);
    for (let slot = 0; slot < options.rxDepth; slot++) this.#postReceive(slot);
  }

  static async create(device: RdmaDevice, options: SrqPingpongOptions): Promise<Players> {
    const { qp: queuePairs, rxDepth, size } = options;
    const cq = await device.createCq(queuePairs + rxDepth);
    const pd = await device.createPd();
    const mr = await pd.regMr((1 + rxDepth) * size, Access.LOCAL_WRITE);
    const srq = await pd.createSrq({ depth: rxDepth });
    const players: Player[] = [];
    while (players.length < queuePairs) {
      const qp = await pd.createQp({ sendCq: cq, srq, maxSendWr: 1 });
      await initializeQueuePair(qp);
      players.push({ qp, psn: randomInt(PSN_COUNT), isDelivered: true, hasReceived: false });
    }
    return new Players(options, device, { cq, srq, mr }, players);
  }

  get #outgoing(): Buffer {
    return this.#mr.bytes.subarray(0, this.#options.size);
  }

  #postReceive(slot: number): void {
    const { size } = this.#options;
    this.#srq.postRecv({ wrId: slot, sges: [this.#mr.sge((1 + slot) * size, size)] });
  }

  #send(player: Player): void {
    player.qp.postSend({ opcode: 'SEND', sges: [this.#mr.sge(0, this.#options.size)] });
    player.isDelivered = false;
    player.hasReceived = false;
  }

  async connect(channel: FixedChannel, isServer: boolean, output: Output): Promise<IpAddress> {
    const players = [...this.#byQpn.values()];
    const own = players.map(({ qp, psn }) => ({ qpn: qp.qpn, psn, address: this.#address }));
    for (const destination of own) output.line(`  local address:  ${describeDestination(destination)}`);
    const prepare = async (peers: readonly PingpongDestination[]) => {
      for (const [k, { qp, psn }] of players.entries()) {
        output.line(`  remote address: ${describeDestination(peers[k])}`);
        await connectQueuePair(qp, { psn, pathMtu: this.#options.mtu, reliable: PINGPONG_RC_ATTRIBUTES }, peers[k]);
      }
    };
    if (isServer) return (await exchangeAsSrqServer(channel, own, prepare))[0].address;
    const peers = await exchangeAsSrqClient(channel, own);
    await prepare(peers);
    return peers[0].address;
  }

  async play(sendsFirst: boolean, alive: () => void): Promise<number> {
    const { iters } = this.#options;
    const startNs = nowNs();
    let sent = 0;
    let received = 0;
    if (sendsFirst) for (const player of this.#byQpn.values()) this.#send(player);
    while (sent < iters || received < iters) {
      const { opcode, qpn, wrId } = checkCompletion(await this.#cq.next());
      alive();
      const player = this.#byQpn.get(qpn)!;
      if (opcode === 'SEND') {
        player.isDelivered = true;
        sent++;
      } else {
        player.hasReceived = true;
        received++;
        this.#take(Number(wrId));
      }
      if (sent < iters && player.isDelivered && player.hasReceived) this.#send(player);
    }
    return (nowNs() - startNs) / NS_PER_S;
  }

  #take(slot: number): void {
    const { size, chk } = this.#options;
    if (chk === true) {
      const message = this.#mr.bytes.subarray((1 + slot) * size, (2 + slot) * size);
      if (!message.equals(this.#outgoing)) this.faults++;
      message.fill(0); // Data of this message must not be mistaken for that of the next.
    }
    this.#postReceive(slot);
  }
}
