/**
 * The peer as a connected queue pair knows it: the path, the share of the peer's socket, and which packets come from
 * it.
 */

import type { QpAttributes } from '../memory/ring/commands.js';
import { EVENT_QP_SOURCE_PORT } from '../memory/ring/enums.js';
import type { IcrcFlow } from '../packet/icrc.js';
import { PATH_MTUS } from '../packet/path-mtu.js';
import type { RocePacket } from '../packet/roce.js';
import type { RxDatagram, TxBatch } from '../port/datagram.js';
import { applyAttributes } from './attributes.js';
import type { PeerAddressing, QueuePairOptions } from './nic-queue-pair.js';
import type { ConnectedPeer, Path } from './path.js';
import type { PeerInFlightLimit } from './peer-in-flight-limit.js';
import { ANY_PEER_PORT, PeerPort } from './peer-port.js';

export class PeerLink implements PeerAddressing {
  mtuBytes: number = PATH_MTUS[0];
  /** Undefined before RTR. */
  connection: ConnectedPeer | undefined;
  readonly #options: QueuePairOptions;
  #port = ANY_PEER_PORT;
  /** UDP source ports of each end. */
  #entropies = 1;
  /** Events of {@link warn} that were raised about this peer. */
  readonly #warned = new Set<number>();

  constructor(options: QueuePairOptions) {
    this.#options = options;
  }

  get isConnected(): boolean {
    return this.connection !== undefined;
  }

  /** Only while connected. */
  get path(): Path {
    return this.connection!.path;
  }

  /** Only while connected. */
  get inFlightLimit(): PeerInFlightLimit {
    return this.connection!.inFlightLimit;
  }

  get port(): PeerPort {
    return this.#port;
  }

  get sourcePort(): number {
    return this.connection?.path.sourcePort ?? 0;
  }

  get remoteSourcePort(): number {
    return this.#port.port;
  }

  /**
   * A connection to the peer that the attributes will name once those of `mask` are applied. Throws what
   * {@link QpHost.connect} throws.
   */
  open(values: QpAttributes, mask: number): ConnectedPeer {
    const attributes = { ...this.#options.attributes };
    applyAttributes(attributes, values, mask);
    return this.#options.host.connect(this.#options.qpn, attributes);
  }

  /** Packets use `connection` from now on, with `entropies` UDP source ports; by default as many as before. */
  use(connection: ConnectedPeer, entropies = this.#entropies): void {
    this.#entropies = entropies;
    this.connection = connection;
    connection.path.spread(entropies);
  }

  /** The peer, or the rule for its source port, has changed: what was learned of its packets is void. */
  expectPeer(): void {
    const { qpn, attributes } = this.#options;
    this.#port = new PeerPort(attributes.remoteSourcePort, qpn, attributes.destQpn, this.#entropies);
    this.#warned.clear();
  }

  /** Leaves the share of the peer's socket to others. */
  disconnect(): void {
    if (this.connection !== undefined) this.#options.host.disconnect(this.connection);
  }

  reset(): void {
    this.mtuBytes = PATH_MTUS[0];
    this.connection = undefined;
    this.#port = ANY_PEER_PORT;
    this.#warned.clear();
  }

  /** Seals the packet that ends at `end`; ECN and DSCP as in {@link Path.seal}. */
  seal(batch: TxBatch, end: number, ecn?: number, dscp?: number): void {
    this.path.seal(batch, end, this.#options.host.nextIpId(), ecn, dscp);
  }

  /**
   * Raises an event about packets that no honest peer sends, EVENT_QP_*: once for each peer, however many packets there
   * are.
   */
  warn(event: number): void {
    if (this.#warned.has(event)) return;
    this.#warned.add(event);
    this.#options.host.raise(event, this.#options.qpn);
  }

  matchesAddresses({ source, destination }: RxDatagram): boolean {
    const { path } = this;
    return path.remote.equals(source) && path.local.equals(destination);
  }

  matchesSourcePort({ opcode }: RocePacket, { sourcePort }: RxDatagram): boolean {
    if (this.#port.accepts(sourcePort, opcode)) return true;
    this.warn(EVENT_QP_SOURCE_PORT);
    return false;
  }

  receiveFlow({ sourcePort }: RxDatagram): IcrcFlow {
    return this.path.receiveFlow(sourcePort);
  }
}
