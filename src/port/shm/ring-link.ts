/**
 * The way to one peer through shared memory: a ring that this side writes. It is offered to the peer until the peer reads it, a few times; a peer that
 * does not know rings drops the offers, and everything goes to it as before.
 */

import process from 'node:process';
import type { LibC } from '../../dgram-ext/libc.js';
import type { IpAddress } from '../../packet/address.js';
import type { TxBatch } from '../datagram.js';
import type { RingOffer } from './introduction.js';
import { RING_BYTES, RingWriter } from './packet-ring.js';
import type { Copying } from './ring-batch.js';
import { Segment } from './segment.js';

const OFFERS_MAX = 5;
/** The first pause between offers, which doubles. */
const OFFER_PAUSE_NS = 50e6;
/** How often a sender looks whether the reading process lives. */
const CHECK_NS = 50e6;
/** A reader that has left the ring full for so long stands still: what is sent to it is lost, as in a full socket. */
const FULL_MAX_NS = 500e6;

/** What the writing end brings. */
export interface OwnEnd {
  /** The system. */
  readonly lib: LibC;
  /** The port's own address. */
  readonly address: IpAddress;
  /** Its UDP port; known once it is open. */
  readonly udpPort: number;
  /** How data are copied into rings, if not as usual. */
  readonly copying?: Copying | undefined;
}

/** The writing side of a ring, and what becomes of it. */
export class RingLink {
  /** IP address of the peer. */
  readonly peer: IpAddress;
  /** UDP port of the peer. */
  readonly peerPort: number;
  readonly #segment: Segment;
  readonly #writer: RingWriter;
  readonly #nonce: number;
  #offers = 0;
  #nextOfferNs = 0;
  #checkedNs = 0;
  #hasDied = false;
  #fullSinceNs = Number.POSITIVE_INFINITY;
  #isOpen = false;
  #hasNews = false;
  /** The peer waits for a doorbell, which it has asked for once. */
  #owesDoorbell = false;
  #hasGivenUp = false;

  /** Throws ERR_ROCE_IO when there is no memory for a ring. */
  constructor({ lib, address, udpPort, copying }: OwnEnd, peer: IpAddress, peerPort: number, nonce: number) {
    this.peer = peer;
    this.peerPort = peerPort;
    this.#nonce = nonce;
    this.#segment = Segment.create(lib, RING_BYTES);
    const ends = { writer: address, writerPort: udpPort, reader: peer, readerPort: peerPort };
    this.#writer = new RingWriter(this.#segment.memory, nonce, ends, copying);
  }

  /** The peer has taken none of the offers: everything goes to it through the socket. */
  get hasGivenUp(): boolean {
    return this.#hasGivenUp;
  }

  /** What to tell the peer now; undefined: nothing, at the moment or ever. */
  offer(nowNs: number): RingOffer | undefined {
    if (this.#isOpen || this.#hasGivenUp || nowNs < this.#nextOfferNs) return undefined;
    if (this.#offers === OFFERS_MAX) {
      this.giveUp();
      return undefined;
    }
    this.#nextOfferNs = nowNs + OFFER_PAUSE_NS * 2 ** this.#offers++;
    return { pid: process.pid, fd: this.#segment.fd, nonce: this.#nonce };
  }

  /** The peer is not offered the ring any more, and everything goes to it through the socket. */
  giveUp(): void {
    this.close();
    this.#hasGivenUp = true;
  }

  /** The peer is there now: earlier offers were perhaps made to nobody. */
  offerAgain(): void {
    this.#offers = 0;
    this.#nextOfferNs = 0;
  }

  /** The ring takes what is sent from here on: {@link openIfRead} has found that the peer reads it. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Opens the ring if the peer has begun to read it. Only while nothing for the peer is on its way to the socket, which the ring would overtake. */
  openIfRead(nowNs: number): void {
    if (this.#isOpen || this.#hasGivenUp || !this.#writer.isOpen) return;
    this.#isOpen = true;
    this.#checkedNs = nowNs;
    this.#segment.forgetName();
  }

  /** The peer has left, died, or written what cannot be: the link is of no use any more. */
  isOver(nowNs: number): boolean {
    if (this.#hasGivenUp) return false;
    if (this.#writer.isOver || this.#hasDied) return true;
    if (!this.#isOpen || nowNs - this.#checkedNs < CHECK_NS) return false;
    this.#checkedNs = nowNs;
    this.#hasDied = !isAlive(this.#writer.readerPid); // Whoever asks next must hear it, too.
    return this.#hasDied;
  }

  /** As {@link RingWriter.reserve}. */
  reserve(slots: number): TxBatch | undefined {
    return this.#writer.reserve(slots);
  }

  /** As {@link RingWriter.keep}. */
  keep(length: number, trafficClass: number, ipId: number): void {
    this.#writer.keep(length, trafficClass, ipId);
    this.#hasNews = true;
    this.#fullSinceNs = Number.POSITIVE_INFINITY;
  }

  /** As {@link RingWriter.skip}. */
  skip(): void {
    this.#writer.skip();
    this.#hasNews = true;
  }

  /** As {@link RingWriter.push}. */
  push(payload: Uint8Array, trafficClass: number, ipId: number): boolean {
    if (!this.#writer.push(payload, trafficClass, ipId)) return false;
    this.#hasNews = true;
    this.#fullSinceNs = Number.POSITIVE_INFINITY;
    return true;
  }

  /** A push has found the ring full. True when that has been so for too long. */
  isStalled(nowNs: number): boolean {
    if (this.#fullSinceNs === Number.POSITIVE_INFINITY) this.#fullSinceNs = nowNs;
    return nowNs - this.#fullSinceNs > FULL_MAX_NS;
  }

  /** Shows the peer what was pushed. True: the peer has to be woken, until {@link hasRung}. */
  publish(): boolean {
    if (this.#hasNews && this.#writer.publish()) this.#owesDoorbell = true;
    this.#hasNews = false;
    return this.#owesDoorbell;
  }

  /** The doorbell is on its way. */
  hasRung(): void {
    this.#owesDoorbell = false;
  }

  /** Nothing more is pushed. */
  close(): void {
    if (this.#hasGivenUp) return;
    this.#writer.close();
    this.#segment.close();
  }
}

/** Whether there is such a process. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
