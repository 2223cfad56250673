/** The rings that a port writes: which packet goes through which, and what is put into them in place. */

import { RoceError } from '../../core/errors.js';
import type { RandomSource } from '../../core/random.js';
import type { IpAddress } from '../../packet/address.js';
import type { TxBatch } from '../datagram.js';
import { DOORBELL_BYTES, RING_OFFER_BYTES, writeDoorbell, writeRingOffer } from './introduction.js';
import { isLocalAddress } from './local-addresses.js';
import { type OwnEnd, RingLink } from './ring-link.js';

/** Peers with a ring, each way; further ones use the socket. */
export const PEERS_MAX = 32;
/** Addresses of which a port remembers whether they are of its host. */
const ADDRESSES_MAX = 4096;

/** Sends a datagram that is no packet, of which `write` makes the bytes. False: there is no batch for it now. */
export type SendControl = (
  peer: IpAddress,
  peerPort: number,
  length: number,
  write: (bytes: Uint8Array, offset: number) => void,
) => boolean;

/** What rings are made of. */
export interface RingSurroundings extends OwnEnd {
  /** Makes the numbers that introduce a ring. */
  readonly random: RandomSource;
  /** Tells a peer of a ring, or of what is in it. */
  readonly sendControl: SendControl;
  /** Which peers are offered rings: all that have an address of this host, or those that {@link OutgoingRings.offer} names. */
  readonly offers: 'all' | 'named';
}

/** Links to a few peers. A peer that takes no ring has one that has given up. */
export class OutgoingRings {
  readonly #surroundings: RingSurroundings;
  readonly #links: RingLink[] = [];
  /** By address, whether it is of this host. */
  readonly #locality = new Map<string, boolean>();
  /** The link that was looked up last. */
  #lastDestination: IpAddress | undefined;
  #lastPort = 0;
  #lastLink: RingLink | undefined;
  /** Whose slots are being filled: its memory has to stay. */
  #reservedFrom: RingLink | undefined;
  #reserved: TxBatch | undefined;
  #owesDoorbell = false;

  constructor(surroundings: RingSurroundings) {
    this.#surroundings = surroundings;
  }

  /** A batch in the ring that was used last; undefined where there is none, or while it is full. */
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

  /** Commits the reserved batch: packets for the ring stay where they are, the others are handed to `other`. Returns how many stay. */
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
   * From here on, packets for peers that have begun to read their rings go through these. Only between batches, and when the socket has taken everything before: peers read a
   * ring once their sockets are empty, and what leaves through the socket later would come behind what was sent after it.
   */
  activateAccepted(nowNs: number): void {
    for (const link of this.#links) link.openIfRead(nowNs);
  }

  /** An open link, or undefined: the socket. It is the same for all packets of a batch. */
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

  /** There is no link. */
  get isEmpty(): boolean {
    return this.#links.length === 0;
  }

  /** There is no room for a further link. */
  get isFull(): boolean {
    return this.#links.length === PEERS_MAX;
  }

  /** Whether this peer is offered a ring, or has taken one. */
  hasLinkTo(address: IpAddress, port: number): boolean {
    return this.#linkOf(address, port) !== undefined;
  }

  /** Offers a ring to a peer, unless it has one. False: the peer is on another host, or there is no room or memory for a further ring. Only between batches. */
  offer(address: IpAddress, port: number, nowNs: number): boolean {
    this.dropOver(nowNs);
    if (this.hasLinkTo(address, port)) return true;
    try {
      if (this.#makeLink(address, port) === undefined) return false;
    } catch (error) {
      if (error instanceof RoceError && error.code === 'ERR_ROCE_IO') return false; // All memory, or all descriptors, are taken.
      throw error;
    }
    this.#forgetLast();
    return true;
  }

  /** The ring is taken back: the peer reads no more of it, and everything goes through the socket. */
  withdraw(address: IpAddress, port: number): void {
    const link = this.#linkOf(address, port);
    if (link !== undefined) this.#drop(link);
  }

  /** The peer has no room for a ring: nobody waits for it to take this one. One that it reads stays. */
  refusedBy(address: IpAddress, port: number): void {
    const link = this.#linkOf(address, port);
    if (link !== undefined && !link.isOpen) link.giveUp();
  }

  /** The peer has taken none of the offers, or refused. */
  hasGivenUpOn(address: IpAddress, port: number): boolean {
    return this.#linkOf(address, port)?.hasGivenUp === true;
  }

  /** Gives up the rings of peers that have left, or died. */
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

  /** Whether a peer can be on this host. */
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

  /** A peer has offered a ring, or says that it shares memory: it is offered one again. */
  heardFrom(address: IpAddress, port: number): void {
    const link = this.#linkOf(address, port);
    if (link?.hasGivenUp) this.#drop(link);
    else link?.offerAgain();
  }

  /** Shows the peers what was put into their rings, and wakes those that sleep: {@link owesDoorbell} says whether that worked for all. */
  publish(): void {
    this.#owesDoorbell = false;
    for (const link of this.#links) {
      if (!link.publish()) continue;
      if (this.#surroundings.sendControl(link.peer, link.peerPort, DOORBELL_BYTES, writeDoorbell)) link.hasRung();
      else this.#owesDoorbell = true;
    }
  }

  /** A peer sleeps over what was put into its ring, and no batch was free to wake it: {@link publish} again. It will not ask again. */
  get owesDoorbell(): boolean {
    return this.#owesDoorbell;
  }

  /** The peer has gone: the next packet goes through the socket, and the one after it offers a new ring. */
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
