/**
 * The promise API: `listen` and `connect` over the TCP exchange.
 *
 *     // server                                              // client
 *     const device = await openDevice({address: '127.0.0.1'});   const device = await openDevice({address: '127.0.0.2'});
 *     const listener = await listen(device, {port: 18515});      const peer = await connect(device, {host: '127.0.0.1', port: 18515});
 *     const peer = await listener.accept();                      await peer.send(Buffer.from('hello'));
 *     (await peer.receive()).data.toString();   // 'hello'
 */

import { randomInt } from 'node:crypto';
import { RoceError } from '../core/errors.js';
import { type RateControlOptions, rateControlSettings } from '../dcqcn/schemes.js';
import { IpAddress } from '../packet/address.js';
import { PSN_COUNT } from '../packet/psn.js';
import { type RecoveryOptions, recoverySettings, STANDARD_RECOVERY } from '../retransmit/schemes.js';
import { Access } from '../verbs/access.js';
import type { RdmaDevice } from '../verbs/device.js';
import type { QueuePair } from '../verbs/queue-pair.js';
import { Resource } from '../verbs/resource.js';
import type { CmConnection } from './cm-connection.js';
import type { CmListener } from './cm-listener.js';
import { Connection, type ConnectionParts, type PeerPresence } from './connection.js';
import type { ConnectionManager } from './connection-manager.js';
import { type ControlChannel, ControlListener, dial } from './control-channel.js';
import { type Agreement, type ExchangeOptions, exchangeAsClient, exchangeAsServer } from './exchange.js';
import { initializeQp } from './qp-parameters.js';
import { decodeRegion, encodeRegion } from './region-data.js';

/** What either side of a connection may say. Nothing is required. */
export interface ConnectionOptions {
  /** Memory opened to the peer: a buffer, or a number of fresh bytes. It may be read, written and changed atomically. */
  readonly region?: Uint8Array | number;
  /** Largest path MTU, default what both ports can carry (at most 4096). */
  readonly mtu?: number;
  /** Default `go-back-n`. Both sides need the same. */
  readonly recovery?: RecoveryOptions;
  /** How fast this side sends data, also to READs of the peer. Default `{name: 'none'}`. */
  readonly rateControl?: RateControlOptions;
  /** Longest message that can be received, default 64 KiB. */
  readonly messageBytesMax?: number;
  /** Messages that may arrive before `receive` is called; more wait at the sender. Default 64. */
  readonly receiveDepth?: number;
  /** Local ACK timeout code (4.096 us x 2^n), default 14. */
  readonly timeout?: number;
  /** Retries before the connection fails, 0..7, default 7. */
  readonly retryCnt?: number;
  /**
   * How long the peer may be silent while its process lives (4.096 us x 2^n), default 22: 17.2 s. 0, and the default where `timeout` or `retryCnt` is
   * given or RDMA CM connects: what these two say. See docs/recovery.md.
   */
  readonly totalTimeout?: number;
  /**
   * Connects through RDMA CM on QP1 instead of TCP, as librdmacm programs do; `port` is then a port of RDMA_PS_TCP. Recovery is
   * go-back-n, and timers are the manager's.
   */
  readonly manager?: ConnectionManager;
}

/** What {@link listen} takes. */
export interface ListenOptions extends ConnectionOptions {
  /** TCP port of the exchange; 0 lets the system choose. */
  readonly port: number;
  /** TCP address to listen on, default the device's own. */
  readonly host?: string;
}

/** What {@link connect} takes. */
export interface ConnectOptions extends ConnectionOptions {
  /** TCP address of the listening peer, or with `manager` its IP address. */
  readonly host: string;
  /** Port that it listens on, of TCP or with `manager` of RDMA CM. */
  readonly port: number;
}

const MTU_MAX = 4096;
const MESSAGE_BYTES_DEFAULT = 64 * 1024;
const RECEIVE_DEPTH_DEFAULT = 64;
/** Peers that may wait to be accepted; more are turned away. As many as over RDMA CM. */
const WAITING_MAX = 128;

/** What the types say, for callers without types. */
function checkOptions(call: string, options: ConnectionOptions & { readonly port: number }, host: unknown): void {
  const { port, recovery, rateControl } = options;
  if (!Number.isInteger(port) || typeof host !== 'string') {
    throw new RoceError(
      'ERR_ROCE_INVALID_ARGUMENT',
      `${call} needs a host and a port`,
      `${call}(device, { host, port })`,
    );
  }
  if (recovery !== undefined) recoverySettings(recovery);
  if (rateControl !== undefined) rateControlSettings(rateControl);
}

async function makeParts(device: RdmaDevice, options: ConnectionOptions): Promise<[ConnectionParts, ExchangeOptions]> {
  const messageBytesMax = options.messageBytesMax ?? MESSAGE_BYTES_DEFAULT;
  const depth = options.receiveDepth ?? RECEIVE_DEPTH_DEFAULT;
  const pd = await device.createPd();
  const sendCq = await device.createCq(256);
  const recvCq = await device.createCq(2 * depth);
  const qp = await pd.createQp({ sendCq, recvCq, maxRecvWr: depth });
  const receivePool = await pd.regMr(device.scratch.take(messageBytesMax * depth), Access.LOCAL_WRITE);
  const region = options.region === undefined ? undefined : await pd.regMr(options.region, Access.REMOTE_ALL);
  const exchange: ExchangeOptions = {
    qp,
    psn: randomInt(PSN_COUNT),
    mtu: options.mtu ?? MTU_MAX,
    recovery: options.recovery ?? STANDARD_RECOVERY,
    messageBytesMax,
    ...(options.rateControl !== undefined && { rateControl: options.rateControl }),
    ...(options.timeout !== undefined && { timeout: options.timeout }),
    ...(options.retryCnt !== undefined && { retryCnt: options.retryCnt }),
    ...(options.totalTimeout !== undefined && { totalTimeout: options.totalTimeout }),
    ...(region !== undefined && { region: { addr: region.addr, rkey: region.rkey, length: region.length } }),
  };
  return [{ pd, qp, sendCq, recvCq, receivePool, messageBytesMax }, exchange];
}

function postReceives({ qp, receivePool, messageBytesMax }: ConnectionParts): void {
  for (let i = 0; i * messageBytesMax < receivePool.length; i++) {
    qp.postRecv({ wrId: i, sges: [receivePool.sge(i * messageBytesMax, messageBytesMax)] });
  }
}

async function discard({ pd, sendCq, recvCq, receivePool }: ConnectionParts): Promise<void> {
  await pd.close();
  pd.device.scratch.give(receivePool.bytes);
  await sendCq.close();
  await recvCq.close();
}

/** The same through RDMA CM: the region travels as private data. */
async function establishThroughManager(
  device: RdmaDevice,
  options: ConnectionOptions,
  connectQp: (qp: QueuePair, privateData: Uint8Array) => Promise<CmConnection>,
): Promise<Connection> {
  const { name } = recoverySettings(options.recovery ?? STANDARD_RECOVERY);
  if (name !== STANDARD_RECOVERY) {
    throw new RoceError('ERR_ROCE_UNSUPPORTED', `RDMA CM cannot agree on ${name}`, 'connect over TCP for that');
  }
  const [parts, { region }] = await makeParts(device, options);
  try {
    await initializeQp(parts.qp);
    postReceives(parts);
    const cm = await connectQp(parts.qp, encodeRegion(region));
    const { rateControl, totalTimeout } = options;
    if (rateControl !== undefined) await parts.qp.modify({ rateControl });
    if (totalTimeout !== undefined) await parts.qp.modify({ totalTimeout });
    const agreement: Agreement = {
      peer: cm.remote,
      remoteQpn: (await parts.qp.query()).destQpn,
      mtu: cm.pathMtu,
      recovery: STANDARD_RECOVERY,
      region: decodeRegion(cm.privateData),
      messageBytesMax: undefined,
      purpose: {},
      destination: {},
    };
    return Connection.over(parts, managedPresence(cm), agreement);
  } catch (error) {
    await discard(parts);
    throw error;
  }
}

function managedPresence(cm: CmConnection): PeerPresence {
  let isOpen = true;
  void cm.disconnected.then(() => {
    isOpen = false;
  });
  return {
    get isOpen() {
      return isOpen;
    },
    ended: cm.disconnected,
    close: () => cm.disconnect(),
  };
}

async function establish(
  device: RdmaDevice,
  channel: ControlChannel,
  options: ConnectionOptions,
  exchange: typeof exchangeAsClient,
): Promise<Connection> {
  const [parts, exchangeOptions] = await makeParts(device, options);
  try {
    const agreement = await exchange(channel, exchangeOptions);
    postReceives(parts);
    return Connection.over(parts, presenceOf(channel), agreement);
  } catch (error) {
    channel.close();
    await discard(parts);
    throw error;
  }
}

/** A TCP connection as the presence of the peer. */
function presenceOf(channel: ControlChannel): PeerPresence {
  return {
    get isOpen() {
      return channel.isOpen;
    },
    ended: channel.closed,
    close: async () => channel.close(),
  };
}

/** Connects to a listening peer. Rejects with ERR_ROCE_CONNECT when nobody answers, ERR_ROCE_MISMATCH when the sides do not fit. */
export async function connect(device: RdmaDevice, options: ConnectOptions): Promise<Connection> {
  checkOptions('connect', options, options.host);
  const { manager } = options;
  if (manager !== undefined) {
    return establishThroughManager(device, options, (qp, privateData) =>
      manager.connect(IpAddress.parse(options.host), options.port, qp, {
        privateData,
        ...(options.mtu !== undefined && { pathMtu: options.mtu }),
        ...(options.retryCnt !== undefined && { retryCount: options.retryCnt }),
      }),
    );
  }
  const channel = await dial(options.host, options.port);
  return establish(device, channel, options, exchangeAsClient);
}

/** Accepts connections. */
export class Listener extends Resource {
  /** Before the connections that it has made. */
  override readonly closeRank = -2;
  readonly #device: RdmaDevice;
  readonly #options: ListenOptions;
  #control: ControlListener | undefined;
  #cm: CmListener | undefined;
  readonly #waitingChannels: ControlChannel[] = [];
  #accepters: Array<{ resolve: (channel: ControlChannel) => void; reject: (error: Error) => void }> = [];

  private constructor(device: RdmaDevice, options: ListenOptions) {
    super(device);
    this.#device = device;
    this.#options = options;
  }

  /** @internal */
  static async open(device: RdmaDevice, options: ListenOptions): Promise<Listener> {
    const listener = new Listener(device, options);
    try {
      await listener.#start();
      return listener;
    } catch (error) {
      await listener.close();
      throw error;
    }
  }

  async #start(): Promise<void> {
    const { manager, host, port } = this.#options;
    if (manager !== undefined) {
      this.#cm = manager.listen(port);
      return;
    }
    this.#control = await ControlListener.open(host ?? this.#device.address.text, port, (channel) => {
      const accepter = this.#accepters.shift();
      if (accepter !== undefined) accepter.resolve(channel);
      else if (this.#waitingChannels.length < WAITING_MAX) this.#waitingChannels.push(channel);
      else channel.close();
    });
  }

  /** The port it listens on, of TCP or of RDMA CM. */
  get port(): number {
    return this.#cm?.port ?? this.#control!.port;
  }

  /** The next connection. A peer that does not fit is refused, told why, and rejects this call with ERR_ROCE_MISMATCH. */
  async accept(): Promise<Connection> {
    if (this.#cm !== undefined) {
      const request = await this.#cm.next();
      return establishThroughManager(this.#device, this.#options, (qp, privateData) =>
        request.accept(qp, { privateData }),
      );
    }
    const channel = this.#waitingChannels.shift() ?? (await this.#nextChannel());
    return establish(this.#device, channel, this.#options, exchangeAsServer);
  }

  #nextChannel(): Promise<ControlChannel> {
    if (this.isClosed) return Promise.reject(new RoceError('ERR_ROCE_CLOSED', 'the listener is closed'));
    return new Promise((resolve, reject) => this.#accepters.push({ resolve, reject }));
  }

  /** Every connection until the listener is closed. Peers that do not fit are refused and left out. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Connection, void, undefined> {
    while (!this.isClosed) {
      try {
        yield await this.accept();
      } catch (error) {
        if (this.isClosed) return;
        if (!(error instanceof RoceError)) throw error;
      }
    }
  }

  /** Takes no more connections; open ones stay. */
  protected override async release(): Promise<void> {
    this.#cm?.close();
    this.#control?.close();
    for (const channel of this.#waitingChannels) channel.close();
    for (const { reject } of this.#accepters) reject(new RoceError('ERR_ROCE_CLOSED', 'the listener is closed'));
    this.#accepters = [];
  }
}

/** Listens for peers. Rejects with ERR_ROCE_IO when the TCP port is taken. */
export async function listen(device: RdmaDevice, options: ListenOptions): Promise<Listener> {
  checkOptions('listen', options, options.host ?? device.address.text);
  return Listener.open(device, options);
}
