/**
 * A ring that this side writes. It is offered to the peer a few times until the peer reads it; a peer without support
 * drops the offers and is served by UDP.
 */

import process from 'node:process';
import type { LibC } from '../../dgram-ext/libc.js';
import type { IpAddress } from '../../packet/address.js';
import type { TxBatch } from '../datagram.js';
import type { RingOffer } from './control-datagram.js';
import type { Copying } from './ring-batch.js';
import { Segment } from './segment.js';
import { RING_BYTES, RingWriter } from './shared-ring.js';

const OFFERS_MAX = 5;
/** The first pause between offers, which doubles. */
const OFFER_PAUSE_NS = 50e6;
const CHECK_NS = 50e6;
/** A reader that has left the ring full for this long is stalled: packets to it are lost, as in a full socket. */
const FULL_MAX_NS = 500e6;

export interface OwnEnd {
  readonly lib: LibC;
  readonly address: IpAddress;
  readonly udpPort: number;
  readonly copying?: Copying | undefined;
}

export class RingLink {
  readonly peer: IpAddress;
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
  #owesDoorbell = false;
  #isAbandoned = false;

  constructor({ lib, address, udpPort, copying }: OwnEnd, peer: IpAddress, peerPort: number, nonce: number) {
    this.peer = peer;
    this.peerPort = peerPort;
    this.#nonce = nonce;
    this.#segment = Segment.create(lib, RING_BYTES);
    const ends = { writer: address, writerPort: udpPort, reader: peer, readerPort: peerPort };
    this.#writer = new RingWriter(this.#segment.memory, nonce, ends, copying);
  }

  get isAbandoned(): boolean {
    return this.#isAbandoned;
  }

  offer(nowNs: number): RingOffer | undefined {
    if (this.#isOpen || this.#isAbandoned || nowNs < this.#nextOfferNs) return undefined;
    if (this.#offers === OFFERS_MAX) {
      this.abandon();
      return undefined;
    }
    this.#nextOfferNs = nowNs + OFFER_PAUSE_NS * 2 ** this.#offers++;
    return { pid: process.pid, fd: this.#segment.fd, nonce: this.#nonce };
  }

  abandon(): void {
    this.close();
    this.#isAbandoned = true;
  }

  /** The peer has started now: earlier offers may have been lost. */
  offerAgain(): void {
    this.#offers = 0;
    this.#nextOfferNs = 0;
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  /** Only while no packets for the peer are queued for the socket, because the ring would overtake them. */
  openIfRead(nowNs: number): void {
    if (this.#isOpen || this.#isAbandoned || !this.#writer.isOpen) return;
    this.#isOpen = true;
    this.#checkedNs = nowNs;
    this.#segment.forgetName();
  }

  isOver(nowNs: number): boolean {
    if (this.#isAbandoned) return false;
    if (this.#writer.isOver || this.#hasDied) return true;
    if (!this.#isOpen || nowNs - this.#checkedNs < CHECK_NS) return false;
    this.#checkedNs = nowNs;
    this.#hasDied = !isAlive(this.#writer.readerPid);
    return this.#hasDied;
  }

  /** As {@link RingWriter.reserve}. */
  reserve(slots: number): TxBatch | undefined {
    return this.#writer.reserve(slots);
  }

  keep(length: number, trafficClass: number, ipId: number): void {
    this.#writer.keep(length, trafficClass, ipId);
    this.#hasNews = true;
    this.#fullSinceNs = Number.POSITIVE_INFINITY;
  }

  skip(): void {
    this.#writer.skip();
    this.#hasNews = true;
  }

  push(payload: Uint8Array, trafficClass: number, ipId: number): boolean {
    if (!this.#writer.push(payload, trafficClass, ipId)) return false;
    this.#hasNews = true;
    this.#fullSinceNs = Number.POSITIVE_INFINITY;
    return true;
  }

  /** True when that has been so for too long. */
  isStalled(nowNs: number): boolean {
    if (this.#fullSinceNs === Number.POSITIVE_INFINITY) this.#fullSinceNs = nowNs;
    return nowNs - this.#fullSinceNs > FULL_MAX_NS;
  }

  /** True: the peer has to be woken, until {@link hasRung}. */
  publish(): boolean {
    if (this.#hasNews && this.#writer.publish()) this.#owesDoorbell = true;
    this.#hasNews = false;
    return this.#owesDoorbell;
  }

  hasRung(): void {
    this.#owesDoorbell = false;
  }

  close(): void {
    if (this.#isAbandoned) return;
    this.#writer.close();
    this.#segment.close();
  }
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
