import { RoceError } from '../../core/errors.js';
import type { RandomSource } from '../../core/random.js';
import type { IpAddress } from '../../packet/address.js';
import type { TxBatch } from '../datagram.js';
import { DOORBELL_BYTES, RING_OFFER_BYTES, writeDoorbell, writeRingOffer } from './control-datagram.js';
import { isLocalAddress } from './local-addresses.js';
import { type OwnEnd, RingLink } from './ring-link.js';

export const PEERS_MAX = 32;
const ADDRESSES_MAX = 4096;

export type SendControl = (
  peer: IpAddress,
  peerPort: number,
  length: number,
  write: (bytes: Uint8Array, offset: number) => void,
) => boolean;

export interface RingSurroundings extends OwnEnd {
  readonly random: RandomSource;
  readonly sendControl: SendControl;
  /**
   * Which peers are offered rings: all that have an address of this host, or those that {@link OutgoingRings.offer}
   * names.
   */
  readonly offers: 'all' | 'named';
}

/** For a peer that accepts no ring: a ring that was given up. */
export class OutgoingRings {
  readonly #surroundings: RingSurroundings;
  readonly #links: RingLink[] = [];
  readonly #locality = new Map<string, boolean>();
  #lastDestination: IpAddress | undefined;
  #lastPort = 0;
  #lastLink: RingLink | undefined;
  /** The ring whose slots are being filled: its memory has to stay mapped. */
  #reservedFrom: RingLink | undefined;
  #reserved: TxBatch | undefined;
  #owesDoorbell = false;

  constructor(surroundings: RingSurroundings) {
    this.#surroundings = surroundings;
  }

  reserve(slots: number, nowNs: number): TxBatch | undefined {
    const link = this.#lastLink;
    if (link === undefined || !link.isOpen || link.isOver(nowNs)) return undefined;
    this.#reserved = link.reserve(slots);
    if (this.#reserved !== undefined) this.#reservedFrom = link;
    return this.#reserved;
  }

  /** The reserved batch that has not been committed. */
  get reserved(): TxBatch | undefined {
    return this.#reserved;
  }

  /**
   * Commits the reserved batch: packets for the ring stay in place, the others are passed to `other`. Returns how
   * many stay.
   */
  commit(batch: TxBatch, nowNs: number, other: (batch: TxBatch, slot: number) => void): number {
    const link = this.#reservedFrom as RingLink;
    const { count, lengths, destinations, destinationPorts, ecns, dscps, ipIds } = batch;
    let kept = 0;
    for (let slot = 0; slot < count; slot++) {
      if (this.linkTo(destinations[slot], destinationPorts[slot], nowNs) === link) {
        link.keep(lengths[slot], (dscps[slot] << 2) | ecns[slot], ipIds[slot]);
        kept++;
      } else {
        link.skip();
        other(batch, slot);
      }
    }
    this.#reservedFrom = undefined;
    this.#reserved = undefined;
    if (!this.#links.includes(link)) link.close();
    return kept;
  }

  /**
   * Packets for peers that have begun to read their rings use these from here on. Only between batches, and when the
   * socket has taken everything: a peer reads a ring once its socket is empty, so later socket packets would be out of
   * order.
   */
  activateAccepted(nowNs: number): void {
    for (const link of this.#links) link.openIfRead(nowNs);
  }

  /** It is the same for all packets of a batch. */
  linkTo(destination: IpAddress, port: number, nowNs: number): RingLink | undefined {
    if (destination !== this.#lastDestination || port !== this.#lastPort) {
      this.#lastDestination = destination;
      this.#lastPort = port;
      this.#lastLink = this.#find(destination, port);
    }
    const link = this.#lastLink;
    if (link === undefined) return undefined;
    if (link.isOver(nowNs)) {
      this.#drop(link);
      return undefined;
    }
    if (link.isOpen) return link;
    const offer = link.offer(nowNs);
    if (offer !== undefined) {
      const { sendControl } = this.#surroundings;
      sendControl(link.peer, link.peerPort, RING_OFFER_BYTES, (bytes, at) => writeRingOffer(bytes, at, offer));
    }
    return undefined;
  }

  #find(destination: IpAddress, port: number): RingLink | undefined {
    const known = this.#linkOf(destination, port);
    return known ?? (this.#surroundings.offers === 'all' ? this.#makeLink(destination, port) : undefined);
  }

  get isEmpty(): boolean {
    return this.#links.length === 0;
  }

  get isFull(): boolean {
    return this.#links.length === PEERS_MAX;
  }

  hasLinkTo(address: IpAddress, port: number): boolean {
    return this.#linkOf(address, port) !== undefined;
  }

  /** False: the peer is on another host, or there is no room or memory for a further ring. */
  offer(address: IpAddress, port: number, nowNs: number): boolean {
    this.dropOver(nowNs);
    if (this.hasLinkTo(address, port)) return true;
    try {
      if (this.#makeLink(address, port) === undefined) return false;
    } catch (error) {
      if (error instanceof RoceError && error.code === 'ERR_ROCE_IO') return false;
      throw error;
    }
    this.#forgetLast();
    return true;
  }

  withdraw(address: IpAddress, port: number): void {
    const link = this.#linkOf(address, port);
    if (link !== undefined) this.#drop(link);
  }

  refusedBy(address: IpAddress, port: number): void {
    const link = this.#linkOf(address, port);
    if (link !== undefined && !link.isOpen) link.abandon();
  }

  isAbandoned(address: IpAddress, port: number): boolean {
    return this.#linkOf(address, port)?.isAbandoned === true;
  }

  dropOver(nowNs: number): void {
    for (const link of [...this.#links]) if (link.isOver(nowNs)) this.#drop(link);
  }

  #makeLink(destination: IpAddress, port: number): RingLink | undefined {
    if (this.isFull || !this.isLocal(destination)) return undefined;
    const link = new RingLink(this.#surroundings, destination, port, this.#surroundings.random.u32() | 0);
    this.#links.push(link);
    return link;
  }

  #linkOf(address: IpAddress, port: number): RingLink | undefined {
    return this.#links.find(({ peer, peerPort }) => peerPort === port && peer.equals(address));
  }

  isLocal(address: IpAddress): boolean {
    const { text } = address;
    let isLocal = this.#locality.get(text);
    if (isLocal === undefined) {
      if (this.#locality.size === ADDRESSES_MAX) this.#locality.clear();
      isLocal = isLocalAddress(address);
      this.#locality.set(text, isLocal);
    }
    return isLocal;
  }

  heardFrom(address: IpAddress, port: number): void {
    const link = this.#linkOf(address, port);
    if (link?.isAbandoned) this.#drop(link);
    else link?.offerAgain();
  }

  publish(): void {
    this.#owesDoorbell = false;
    for (const link of this.#links) {
      if (!link.publish()) continue;
      if (this.#surroundings.sendControl(link.peer, link.peerPort, DOORBELL_BYTES, writeDoorbell)) link.hasRung();
      else this.#owesDoorbell = true;
    }
  }

  /** A peer sleeps although its ring has packets, and no batch was free to wake it: {@link publish} again. */
  get owesDoorbell(): boolean {
    return this.#owesDoorbell;
  }

  #drop(link: RingLink): void {
    this.#links.splice(this.#links.indexOf(link), 1);
    this.#forgetLast();
    if (link !== this.#reservedFrom) link.close();
  }

  /** Closes all rings; not while a batch is {@link reserved}. */
  close(): void {
    for (const link of this.#links.splice(0)) link.close();
    this.#forgetLast();
  }

  #forgetLast(): void {
    this.#lastDestination = undefined;
    this.#lastLink = undefined;
  }
}
