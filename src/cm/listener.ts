/**
 * Accepts connections. Set-ups run side by side, and nothing is made for a peer before its hello has been read and fits. A peer
 * that misbehaves ends only its own set-up. A counter and an event report it; `accept` and iteration do not.
 */

import { EventEmitter } from 'node:events';
import process from 'node:process';
import { isArgumentError, RoceError, type RoceErrorCode } from '../core/errors.js';
import { WAIT_OPTIONS, WaitDeadline, WaitList, type WaitOptions } from '../core/wait.js';
import type { IpAddress } from '../packet/address.js';
import type { RdmaDevice } from '../verbs/device.js';
import { Resource } from '../verbs/resource.js';
import type { CmListener } from './cm-listener.js';
import type { CmRequest } from './cm-request.js';
import type { Connection } from './connection.js';
import { type ConnectionOptions, type MadeParts, makeParts, termsOf } from './connection-parts.js';
import type { ControlChannel } from './control-channel.js';
import { ControlListener, type EarlyEnd } from './control-listener.js';
import { exchangeAsServer, previewHello } from './exchange.js';
import { type FullLimit, Places } from './places.js';
import { channelSecurity } from './secure-channel.js';
import { setUpOverChannel, setUpThroughManager } from './set-up.js';

/** What {@link listen} takes. */
export interface ListenOptions extends ConnectionOptions {
  /** TCP port of the exchange; 0 lets the system choose. */
  readonly port: number;
  /** TCP address to listen on, default the device's own. */
  readonly host?: string;
  /** Connections open or being set up at a time, of all peers. Default 1024. One takes 4 MiB of receive buffers by default. */
  readonly maxConnections?: number;
  /** The same from one address (or one IPv6 network of 64 bits). Default 128. */
  readonly maxConnectionsPerAddress?: number;
}

/** What became of the peers of a listener so far. */
export interface ListenerCounters {
  /** Connections made. */
  established: number;
  /** The peer spoke another protocol, had other options, or claimed an address that is not its own. */
  refused_mismatch: number;
  /** Secure mode: the peer did not prove that it is somebody who is let in. */
  refused_untrusted: number;
  /** Its address, or all addresses together, had the maximum of connections, or the program did not accept those that were ready. */
  refused_full: number;
  /** The peer sent no complete hello within 10 s, or left before. */
  timed_out: number;
  /** The peer was silent, or had stopped in its set-up, and was the oldest of these when another peer needed its place. */
  crowded_out: number;
  /** This process could not serve it: no memory, no descriptor, a defect. */
  failed: number;
}

/** Why a peer did not become a connection, as {@link ListenerCounters} counts it. */
export type RefusalReason = Exclude<keyof ListenerCounters, 'established'>;

/** A peer that did not become a connection. */
export interface Refusal {
  /** Why, by name. */
  readonly reason: RefusalReason;
  /** `host:port` of the peer. */
  readonly peer: string;
  /** The reason in words, as the peer receives it if it still listens. */
  readonly error: Error;
}

/** Events of a listener. Peers cause them, at any rate. */
export interface ListenerEvents {
  /** A peer did not become a connection. */
  REFUSED: [refusal: Refusal];
}

const MAX_CONNECTIONS = 1024;
const MAX_CONNECTIONS_PER_ADDRESS = 128;
/** Connections that may wait to be accepted; more peers are turned away. As many as over RDMA CM. */
const WAITING_MAX = 128;

const EARLY_REASONS = {
  mismatch: 'refused_mismatch',
  untrusted: 'refused_untrusted',
  timed_out: 'timed_out',
  crowded_out: 'crowded_out',
} as const satisfies Record<EarlyEnd, RefusalReason>;

/** A peer at the door. */
interface Visitor {
  readonly peer: string;
  readonly address: IpAddress;
  /** Rejects for a peer that does not fit. */
  check(): Promise<void>;
  connect(made: MadeParts, onClosed: () => void): Promise<Connection>;
  /** Tells it why there will be no connection, unless it has been told. `busy`: not now. */
  refuse(why: string, options?: { readonly busy: boolean }): void;
  /** Ends a set-up under way; undefined where it ends by itself in time. */
  readonly abort?: (why: string) => void;
}

/** A visitor whose hello fits: a connection, or the set-up of one. */
interface Guest {
  readonly visitor: Visitor;
  connection: Connection | undefined;
  /** It had to make room. */
  isExpelled: boolean;
}

/** Accepts connections; made by {@link listen}. */
export class Listener extends Resource {
  /** Before the connections that it has made. */
  override readonly closeRank = -2;
  /** `REFUSED`: a peer that did not become a connection, with the reason. */
  readonly events = new EventEmitter<ListenerEvents>();
  readonly #device: RdmaDevice;
  readonly #options: ListenOptions;
  readonly #guests: Places<Guest>;
  readonly #counters: ListenerCounters = {
    established: 0,
    refused_mismatch: 0,
    refused_untrusted: 0,
    refused_full: 0,
    timed_out: 0,
    crowded_out: 0,
    failed: 0,
  };
  /** Until `close` is called. */
  #isListening = true;
  #control: ControlListener | undefined;
  #cm: CmListener | undefined;
  /** Made, and not asked for yet. */
  readonly #ready: Connection[] = [];
  readonly #accepters = new WaitList<Connection>();
  /** A mistake in the options, to be told to the next `accept`. */
  #ownFault: RoceError | undefined;

  private constructor(device: RdmaDevice, options: ListenOptions) {
    super(device);
    this.#device = device;
    this.#options = options;
    const { maxConnections = MAX_CONNECTIONS, maxConnectionsPerAddress = MAX_CONNECTIONS_PER_ADDRESS } = options;
    this.#guests = new Places({ total: maxConnections, perAddress: maxConnectionsPerAddress });
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
      void this.#takeRequests(this.#cm);
      return;
    }
    this.#control = await ControlListener.open(
      host ?? this.#device.address.text,
      port,
      {
        onPeer: (channel) => void this.#receive(this.#visitorOver(channel)),
        onEarlyEnd: (end, peer, error) => this.#turnAway(EARLY_REASONS[end], peer, error),
        onTrouble: (error) => this.#turnAway('failed', 'a peer', error),
      },
      channelSecurity(this.#device, this.#options),
    );
  }

  /** The port it listens on, of TCP or of RDMA CM. */
  get port(): number {
    return this.#cm?.port ?? this.#control!.port;
  }

  /** Callers of `accept` that wait. @internal */
  get waiting(): number {
    return this.#accepters.size;
  }

  /** What has become of the peers so far; a copy. */
  counters(): ListenerCounters {
    return { ...this.#counters };
  }

  /**
   * The next connection. A peer that does not fit is refused with the reason and left out; no stranger can make this call fail. Rejects with ERR_ROCE_CLOSED
   * when the listener is closed, and for a mistake in its own options that comes to light with the first peer, such as a region that
   * cannot be registered. ERR_ROCE_ABORTED or ERR_ROCE_TIMEOUT as the options say: the connection that comes next is then for the next call.
   */
  async accept(options?: WaitOptions): Promise<Connection> {
    const deadline = WaitDeadline.of('accept', options, WAIT_OPTIONS, this.#device.clock);
    const connection = this.#ready.shift();
    if (connection !== undefined) return connection;
    const fault = this.#ownFault;
    this.#ownFault = undefined;
    if (fault !== undefined) throw fault;
    if (!this.#isListening) throw closed();
    return this.#accepters.wait(deadline, undefined);
  }

  /** Every connection until the listener is closed. Throws for a mistake in its own options, as {@link accept}; peers cannot end it. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Connection, void, undefined> {
    while (this.#isListening) {
      try {
        yield await this.accept();
      } catch (error) {
        if (!this.#isListening) return;
        throw error;
      }
    }
  }

  #visitorOver(channel: ControlChannel): Visitor {
    return {
      peer: channel.peer,
      address: channel.remoteAddress!,
      check: () => previewHello(channel, this.#device, termsOf(this.#options)),
      connect: (made, onClosed) => setUpOverChannel(made, channel, exchangeAsServer, onClosed),
      refuse: (why, options) => channel.refuse(why, options),
      abort: (why) => {
        channel.refuse(why, { busy: true });
        channel.abort();
      },
    };
  }

  async #takeRequests(listener: CmListener): Promise<void> {
    for await (const request of listener) void this.#receive(visitorBy(request));
  }

  /** Takes a visitor from the door to a connection, or turns it away. Never rejects. */
  async #receive(visitor: Visitor): Promise<void> {
    try {
      await visitor.check();
    } catch (error) {
      visitor.refuse(toldOf(error));
      this.#turnAway(reasonOf(error), visitor.peer, error as Error);
      return;
    }
    const full = this.#fullFor(visitor);
    if (full !== undefined || !this.#isListening) {
      const why = full ?? 'the listener is closed';
      visitor.refuse(why, { busy: true });
      this.#turnAway('refused_full', visitor.peer, new RoceError('ERR_ROCE_LIMIT', why));
      return;
    }
    const guest: Guest = { visitor, connection: undefined, isExpelled: false };
    this.#guests.enter(guest, visitor.address);
    try {
      guest.connection = await this.#setUp(guest);
      this.#deliver(guest.connection);
    } catch (error) {
      this.#guests.leave(guest);
      visitor.refuse(toldOf(error));
      if (!guest.isExpelled) this.#turnAway(reasonOf(error), visitor.peer, error as Error);
    }
  }

  async #setUp(guest: Guest): Promise<Connection> {
    let made: MadeParts;
    try {
      made = await makeParts(this.#device, this.#options);
    } catch (error) {
      // The peer has no part in this.
      if (isArgumentError(error)) this.#failAccept(error);
      throw error;
    }
    return guest.visitor.connect(made, () => this.#guests.leave(guest));
  }

  /** Why there is no place for it, after whoever may go has gone. */
  #fullFor({ address }: Visitor): string | undefined {
    if (this.#ready.length >= WAITING_MAX) return `${WAITING_MAX} connections wait to be accepted`;
    const limit = this.#guests.fullFor(address);
    if (limit === undefined) return undefined;
    const guest = this.#guests.inTheWayOf(address, isLeft) ?? this.#guests.inTheWayOf(address, isStuck);
    if (guest === undefined) return this.#limitText(limit, address);
    this.#expel(guest);
    return undefined;
  }

  #limitText(limit: FullLimit, address: IpAddress): string {
    const { total, perAddress } = this.#guests.limits;
    return limit === 'perAddress'
      ? `${perAddress} connections of ${address} are open, as many as one address may have (maxConnectionsPerAddress)`
      : `${total} connections are open, as many as there may be (maxConnections)`;
  }

  #expel(guest: Guest): void {
    const { visitor, connection } = guest;
    this.#guests.leave(guest);
    guest.isExpelled = true;
    if (connection !== undefined) {
      connection.close().catch(() => {}); // Then it is closed with the device.
      return;
    }
    const error = new RoceError('ERR_ROCE_CONNECT', 'the set-up made no progress, and another peer needed the room');
    visitor.abort?.(error.message);
    this.#turnAway('crowded_out', visitor.peer, error);
  }

  #deliver(connection: Connection): void {
    if (!this.#isListening) {
      void connection.close();
      return;
    }
    this.#counters.established++;
    if (!this.#accepters.serve(() => connection)) this.#ready.push(connection);
  }

  #failAccept(error: RoceError): void {
    if (!this.#accepters.fail(error)) this.#ownFault = error;
  }

  #turnAway(reason: RefusalReason, peer: string, error: Error): void {
    if (!this.#isListening) return;
    this.#counters[reason]++;
    const isHeard = this.events.emit('REFUSED', { reason, peer, error });
    // What is wrong here, not there, must not go unseen; nor may a stranger fill a log with it.
    if (isHeard || reason !== 'failed' || this.#counters.failed > 1) return;
    process.emitWarning(error);
  }

  /** Takes no more connections, and closes those that the program has not accepted; others stay. */
  protected override async release(): Promise<void> {
    this.#isListening = false;
    this.#cm?.close();
    this.#control?.close();
    this.#accepters.failAll(closed());
    for (const guest of [...this.#guests.members]) if (guest.connection === undefined) this.#expel(guest);
    for (const connection of this.#ready.splice(0)) await connection.close();
  }
}

function visitorBy(request: CmRequest): Visitor {
  return {
    peer: `${request.remote}:${request.remotePort}`,
    address: request.remote,
    check: async () => {
      if (!request.isPending) throw new RoceError('ERR_ROCE_CONNECT', 'the peer has given up');
    },
    connect: (made, onClosed) =>
      setUpThroughManager(made, (qp, privateData) => request.accept(qp, { privateData }), onClosed),
    refuse: () => request.reject(),
  };
}

/** Its peer has left, and the program has taken all that came: nothing is lost with it. */
function isLeft({ connection }: Guest): boolean {
  return connection?.isSpent === true;
}

function isStuck({ connection, visitor }: Guest): boolean {
  return connection === undefined && visitor.abort !== undefined;
}

/** Codes that say that this side could not. */
const OWN_TROUBLE: ReadonlySet<RoceErrorCode> = new Set(['ERR_ROCE_IO', 'ERR_ROCE_LIMIT', 'ERR_ROCE_CLOSED']);

function reasonOf(error: unknown): RefusalReason {
  if (!(error instanceof RoceError) || OWN_TROUBLE.has(error.code)) return 'failed';
  return error.code === 'ERR_ROCE_CONNECT' ? 'timed_out' : 'refused_mismatch';
}

/** A stranger need not know more of what is wrong here. */
function toldOf(error: unknown): string {
  return error instanceof RoceError ? error.message : 'the peer has failed';
}

function closed(): RoceError {
  return new RoceError('ERR_ROCE_CLOSED', 'the listener is closed');
}
