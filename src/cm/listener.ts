/**
 * Set-ups run concurrently, and nothing is allocated for a peer before its hello has been read and accepted. A peer
 * that misbehaves ends only its own set-up. A counter and an event report it; `accept` and iteration do not.
 */

import process from 'node:process';
import { ConnectionLimiter, type ConnectionLimits } from '../core/connection-limiter.js';
import { isArgumentError, RoceError, type RoceErrorCode } from '../core/errors.js';
import { WaitDeadline, WaitList, type WaitOptions } from '../core/wait.js';
import type { IpAddress } from '../packet/address.js';
import type { RdmaDevice } from '../verbs/device.js';
import { Resource } from '../verbs/resource.js';
import { TypedEvents } from '../verbs/typed-events.js';
import type { CmListener } from './cm-listener.js';
import type { CmRequest } from './cm-request.js';
import type { Connection } from './connection.js';
import { type ConnectionOptions, type MadeParts, makeParts, termsOf } from './connection-parts.js';
import type { ControlChannel } from './control-channel.js';
import { ControlListener, type EarlyEnd } from './control-listener.js';
import { exchangeAsServer, previewHello } from './exchange.js';
import { channelSecurity } from './secure-channel.js';
import { setUpOverChannel, setUpThroughManager } from './set-up.js';

/** Options of {@link listen}. */
export interface ListenOptions extends ConnectionOptions {
  /** TCP port of the exchange; 0 lets the system choose. */
  readonly port: number;
  /** TCP address to listen on, default the device's own. */
  readonly host?: string | undefined;
  /**
   * Most connections of all peers that are open or being set up; as many again may be silent so far. Default 1024. One
   * has 4 MiB of receive buffers by default, whose pages take memory from their first message on. A client beyond the
   * limit is refused, and tries again for its `busyTimeoutMs`.
   */
  readonly maxConnections?: number | undefined;
  /** The same from one address (or one IPv6 network of 64 bits). Default 128. */
  readonly maxConnectionsPerAddress?: number | undefined;
  /** Closing the listener closes the connections that it has made. Default false: they stay. */
  readonly closesConnections?: boolean | undefined;
}

/** Outcomes of the peers of a listener so far. */
export interface ListenerCounters {
  /** Connections made. */
  established: number;
  /** The peer spoke another protocol, had other options, or claimed an address that is not its own. */
  refused_mismatch: number;
  /** Secure mode: the peer did not authenticate as an allowed identity. */
  refused_untrusted: number;
  /**
   * Its address, or all addresses together, had the maximum of connections, or the program did not accept those that
   * were ready.
   */
  refused_full: number;
  /** The peer sent no complete hello within 10 s, or left before. */
  timed_out: number;
  /** The peer was silent or stalled in its set-up, and was evicted as the oldest such peer. */
  evicted: number;
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
/** As many as over RDMA CM. */
const WAITING_MAX = 128;

/** Set-ups that are older may be evicted. Shorter than the time for which clients retry while a listener is full. */
const SET_UP_NS = 3e9;

const EARLY_REASONS = {
  mismatch: 'refused_mismatch',
  untrusted: 'refused_untrusted',
  timed_out: 'timed_out',
  evicted: 'evicted',
} as const satisfies Record<EarlyEnd, RefusalReason>;

/** A peer whose hello has arrived. */
interface PendingConnection {
  readonly peer: string;
  readonly address: IpAddress;
  check(): Promise<void>;
  connect(made: MadeParts, onClosed: () => void): Promise<Connection>;
  refuse(why: string, options?: { readonly busy: boolean }): void;
  readonly abort?: (why: string) => void;
}

/** A peer with an accepted hello: a connection, or the set-up of one. */
interface AdmittedConnection {
  readonly pending: PendingConnection;
  readonly sinceNs: number;
  connection: Connection | undefined;
  isEvicted: boolean;
}

/** Accepts connections; made by {@link listen}. */
export class Listener extends Resource {
  /** Closes before the connections that it has made. */
  override readonly closeRank = -2;
  /** `REFUSED`: a peer that did not become a connection, with the reason. */
  readonly events = new TypedEvents<ListenerEvents>({ REFUSED: true });
  readonly #device: RdmaDevice;
  readonly #options: ListenOptions;
  readonly #limits: ConnectionLimits;
  readonly #admitted: ConnectionLimiter<AdmittedConnection>;
  readonly #counters: ListenerCounters = {
    established: 0,
    refused_mismatch: 0,
    refused_untrusted: 0,
    refused_full: 0,
    timed_out: 0,
    evicted: 0,
    failed: 0,
  };
  #isListening = true;
  #control: ControlListener | undefined;
  #cm: CmListener | undefined;
  readonly #ready: Connection[] = [];
  readonly #accepters = new WaitList<Connection>();
  #ownFault: RoceError | undefined;

  private constructor(device: RdmaDevice, options: ListenOptions) {
    super(device);
    this.#device = device;
    this.#options = options;
    const { maxConnections = MAX_CONNECTIONS, maxConnectionsPerAddress = MAX_CONNECTIONS_PER_ADDRESS } = options;
    this.#limits = { total: maxConnections, perAddress: maxConnectionsPerAddress };
    this.#admitted = new ConnectionLimiter<AdmittedConnection>({
      quotas: [{ states: ['admitted'], ...this.#limits }],
      evict: (admitted) => this.#onEvicted(admitted),
    });
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
        onPeer: (channel) => void this.#receive(this.#pendingOver(channel)),
        onEarlyEnd: (end, peer, error) => this.#turnAway(EARLY_REASONS[end], peer, error),
        onTrouble: (error) => this.#turnAway('failed', 'a peer', error),
      },
      channelSecurity(this.#device, this.#options),
      { pending: this.#limits },
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

  /** Outcomes of peers so far; a copy. */
  counters(): ListenerCounters {
    return { ...this.#counters };
  }

  /**
   * The next connection. A peer whose options do not match is refused with the reason; no peer can make this call fail.
   * Rejects with ERR_ROCE_CLOSED when the listener is closed. Rejects for an invalid option that is detected only with
   * the first peer, such as a region that cannot be registered. Rejects with ERR_ROCE_ABORTED or ERR_ROCE_TIMEOUT as
   * the options say; the next call then returns the next connection.
   */
  async accept(options?: WaitOptions): Promise<Connection> {
    const deadline = WaitDeadline.of('accept', options, this.#device.clock);
    const connection = this.#ready.shift();
    if (connection !== undefined) return connection;
    const fault = this.#ownFault;
    this.#ownFault = undefined;
    if (fault !== undefined) throw fault;
    if (!this.#isListening) throw closed();
    return this.#accepters.wait(deadline, undefined);
  }

  /**
   * Every connection until the listener is closed: `for await (const connection of listener)` does the same without
   * options. They apply to the wait for each connection. Throws for a mistake in the listener's own options, and
   * ERR_ROCE_ABORTED and ERR_ROCE_TIMEOUT, as {@link accept}; peers cannot end it.
   */
  connections(options?: WaitOptions): AsyncGenerator<Connection, void, undefined> {
    WaitDeadline.check('connections', options);
    return this.#connections(options);
  }

  /** The same as {@link connections} without options. */
  [Symbol.asyncIterator](): AsyncGenerator<Connection, void, undefined> {
    return this.#connections();
  }

  async *#connections(options?: WaitOptions): AsyncGenerator<Connection, void, undefined> {
    while (this.#isListening) {
      try {
        yield await this.accept(options);
      } catch (error) {
        if (!this.#isListening) return;
        throw error;
      }
    }
  }

  #pendingOver(channel: ControlChannel): PendingConnection {
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
    for await (const request of listener) void this.#receive(pendingFrom(request));
  }

  /** Sets up the connection of a peer from its hello on, or refuses it. Never rejects. */
  async #receive(pending: PendingConnection): Promise<void> {
    try {
      await pending.check();
    } catch (error) {
      pending.refuse(toldOf(error));
      this.#turnAway(reasonOf(error), pending.peer, error as Error);
      return;
    }
    const full = this.#fullFor(pending);
    if (full !== undefined || !this.#isListening) {
      const why = full ?? 'the listener is closed';
      pending.refuse(why, { busy: true });
      this.#turnAway('refused_full', pending.peer, new RoceError('ERR_ROCE_LIMIT', why));
      return;
    }
    const admitted: AdmittedConnection = {
      pending,
      sinceNs: this.#device.clock.nowNs(),
      connection: undefined,
      isEvicted: false,
    };
    this.#admitted.enter(admitted, 'admitted', pending.address);
    try {
      admitted.connection = await this.#setUp(admitted);
      this.#deliver(admitted.connection);
    } catch (error) {
      this.#admitted.leave(admitted);
      pending.refuse(toldOf(error));
      if (!admitted.isEvicted) this.#turnAway(reasonOf(error), pending.peer, error as Error);
    }
  }

  async #setUp(admitted: AdmittedConnection): Promise<Connection> {
    let made: MadeParts;
    try {
      made = await makeParts(this.#device, this.#options);
    } catch (error) {
      if (isArgumentError(error)) this.#failAccept(error);
      throw error;
    }
    return admitted.pending.connect(made, () => this.#admitted.leave(admitted));
  }

  /** The reason if there is no space for it, even after an eviction. */
  #fullFor({ address }: PendingConnection): string | undefined {
    if (this.#ready.length >= WAITING_MAX) return `${WAITING_MAX} connections wait to be accepted`;
    const limit = this.#admitted.exceeded('admitted', address);
    const now = this.#device.clock.nowNs();
    const hasRoom =
      this.#admitted.makeRoom('admitted', address, isLeft) ||
      this.#admitted.makeRoom('admitted', address, (admitted) => isStuck(admitted, now));
    if (hasRoom) return undefined;
    const { total, perAddress } = this.#limits;
    return limit === 'perAddress'
      ? `${perAddress} connections of ${address} are open, as many as one address may have (maxConnectionsPerAddress)`
      : `${total} connections are open, as many as there may be (maxConnections)`;
  }

  #onEvicted(admitted: AdmittedConnection): void {
    const { pending, connection } = admitted;
    admitted.isEvicted = true;
    if (connection !== undefined) {
      connection.close().catch(() => {});
      return;
    }
    const error = new RoceError('ERR_ROCE_CONNECT', 'the set-up made no progress, and another peer needed the room');
    pending.abort?.(error.message);
    this.#turnAway('evicted', pending.peer, error);
  }

  #deliver(connection: Connection): void {
    if (!this.#isListening) {
      connection.close().catch(() => {});
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
    // A local error must be reported, but a peer must not be able to fill the log with it.
    if (isHeard || reason !== 'failed' || this.#counters.failed > 1) return;
    process.emitWarning(error);
  }

  /** Takes no more connections, and closes those that the program has not accepted; others as the options say. */
  protected override async release(): Promise<void> {
    this.#isListening = false;
    this.#cm?.close();
    this.#control?.close();
    this.#accepters.failAll(closed());
    for (const admitted of this.#admitted.connections) {
      if (admitted.connection === undefined) this.#admitted.evict(admitted);
    }
    for (const connection of this.#ready.splice(0)) await connection.close();
    if (this.#options.closesConnections !== true) return;
    const made = [...this.#admitted.connections].flatMap(({ connection }) => connection ?? []);
    await Promise.all(made.map((connection) => connection.close()));
  }
}

function pendingFrom(request: CmRequest): PendingConnection {
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

function isLeft({ connection }: AdmittedConnection): boolean {
  return connection?.isSpent === true;
}

/** A connection that is not late may be complete for its peer, which would consider itself connected. */
function isStuck({ connection, pending, sinceNs }: AdmittedConnection, now: number): boolean {
  return connection === undefined && pending.abort !== undefined && now - sinceNs >= SET_UP_NS;
}

const OWN_TROUBLE: ReadonlySet<RoceErrorCode> = new Set(['ERR_ROCE_IO', 'ERR_ROCE_LIMIT', 'ERR_ROCE_CLOSED']);

function reasonOf(error: unknown): RefusalReason {
  if (!(error instanceof RoceError) || OWN_TROUBLE.has(error.code)) return 'failed';
  return error.code === 'ERR_ROCE_CONNECT' ? 'timed_out' : 'refused_mismatch';
}

/** An unauthenticated peer receives no details of local errors. */
function toldOf(error: unknown): string {
  return error instanceof RoceError ? error.message : 'the peer has failed';
}

function closed(): RoceError {
  return new RoceError('ERR_ROCE_CLOSED', 'the listener is closed');
}
