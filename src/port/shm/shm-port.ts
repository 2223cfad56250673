/**
 * A UDP port that writes packets for peers on its own host into memory that it shares with them, and everything else
 * into its socket. A ring in memory replaces the wire; packets, ICRC, recovery and rate control are the same. The
 * socket remains for ring offers, doorbells, and all packets of peers that do not share memory.
 *
 * Invariants: packets to a peer arrive in order, also at the change from the socket to a ring; a ring's memory is
 * not touched after its link or reader is closed.
 */

import { setTimeout } from 'node:timers/promises';
import { TrafficSpin } from '../../core/adaptive-spin.js';
import type { RandomSource } from '../../core/random.js';
import { type Pace, TokenBucket } from '../../core/token-bucket.js';
import {
  type BatchedUdpPort,
  type BatchedUdpPortOptions,
  openBatchedUdpPort,
} from '../../dgram-ext/batched-udp-port.js';
import { type LibC, libC } from '../../dgram-ext/libc.js';
import type { IpAddress } from '../../packet/address.js';
import { appendSlot } from '../append-slot.js';
import type { IpIdPolicy, PortCounters, RxDatagram, TxBatch } from '../datagram.js';
import { DOORBELL_BYTES, type RingOffer, readControlDatagram, writeRefusal } from './control-datagram.js';
import { CopyChoice } from './copy-choice.js';
import { IncomingRings } from './incoming-rings.js';
import { OutgoingRings, PEERS_MAX, type SendControl } from './outgoing-rings.js';
import type { Copying } from './ring-batch.js';
import { RING_SLOTS } from './shared-ring.js';
import { loadStreamingCopy } from './streaming-copy.js';

/** Ring offers that a port checks: each costs system calls, and any program can send them. */
const OFFER_PACE: Pace = { burst: PEERS_MAX, perSecond: 100 };
const BATCH_SLOTS = 60;
/**
 * Data in flight to a peer; the rest of the ring is for answers. A prime number: otherwise a fault rule that hits every
 * n-th packet would hit the same one in each retransmitted window.
 */
const BUDGET_PACKETS = RING_SLOTS - 129;
/** Checks of the rings per check of the socket, a system call, if only control datagrams are expected. */
const RING_LOOKS = 16;
/** How long a peer that announces shared memory has to accept a ring before the first packets go through the socket. */
const SHARE_TIMEOUT_NS = 1e9;
const SHARE_POLL_MS = 1;
/** How long a thread sleeps while a ring is full: there is no notification when space becomes free. */
const FULL_SLEEP_NS = 50_000;

export interface ShmPortOptions extends BatchedUdpPortOptions {
  readonly random: RandomSource;
  /**
   * Copies data past the cache (`streaming-copy.ts`), where the system can: borrowed data only, because the ICRC is
   * then computed over their source.
   */
  readonly streams?: boolean;
  readonly offers?: 'all' | 'named';
}

export interface SharedMemoryPort extends BatchedUdpPort {
  share(address: IpAddress, udpPort: number): Promise<boolean>;
  /** Only when no packet in it is in flight. */
  unshare(address: IpAddress, udpPort: number): void;
}

export function openShmPort(options: ShmPortOptions): SharedMemoryPort {
  const base = openBatchedUdpPort(options);
  return new ShmPort(libC() as LibC, base, options);
}

class ShmPort implements SharedMemoryPort {
  readonly address: IpAddress;
  onDatagram: (datagram: RxDatagram) => void = () => {};
  onDelivered: () => void = () => {};
  readonly #base: BatchedUdpPort;
  readonly #options: ShmPortOptions;
  readonly #outgoing: OutgoingRings;
  readonly #isNamed: boolean;
  #copying: Copying | 'as usual' | undefined;
  readonly #incoming: IncomingRings;
  readonly #offerPace = new TokenBucket(OFFER_PACE);
  #batchNs = 0;
  /** The packets of a reserved batch that go through the socket, or another ring. */
  #elsewhere: TxBatch | undefined;
  readonly #waiting: TxBatch[] = [];
  #waitingSlot = 0;
  readonly #rx: RxDatagram;
  readonly #spin = new TrafficSpin();
  #turnPending = false;
  #isClosed = false;
  #isReading = false;
  #ringLooks = 0;
  #isReadingSocket = false;
  /** Of rings, plus what the socket counts, less control datagrams. */
  readonly #own: PortCounters = { txDatagrams: 0, rxDatagrams: 0, txErrors: 0 };

  constructor(lib: LibC, base: BatchedUdpPort, options: ShmPortOptions) {
    this.#base = base;
    this.address = base.address;
    base.onDatagram = (datagram) => this.#fromSocket(datagram);
    base.onDelivered = () => this.onDelivered();
    this.#options = options;
    const { random, offers = 'all' } = options;
    this.#isNamed = offers === 'named';
    const copying = () => this.#copyingBy(lib);
    this.#outgoing = new OutgoingRings({
      lib,
      get copying() {
        return copying();
      },
      address: base.address,
      get udpPort() {
        return base.udpPort;
      },
      random,
      sendControl: this.#sendControl,
      offers,
    });
    if (!this.#isNamed) copying();
    this.#incoming = new IncomingRings(lib);
    this.#rx = {
      bytes: new Uint8Array(0),
      offset: 0,
      length: 0,
      source: options.address,
      sourcePort: 0,
      destination: options.address,
      destinationPort: 0,
      ecn: 0,
      dscp: 0,
      ipId: 0,
    };
  }

  #copyingBy(lib: LibC): Copying | undefined {
    if (this.#copying === undefined) {
      const { streams, nowNs } = this.#options;
      const streaming = streams === true ? loadStreamingCopy(lib) : undefined;
      this.#copying = streaming === undefined ? 'as usual' : { streaming, choice: new CopyChoice(nowNs) };
    }
    return this.#copying === 'as usual' ? undefined : this.#copying;
  }

  get description(): string {
    const { description } = this.#base;
    if (this.#isNamed) return `${description}, shared memory where both ends can`;
    return `${description}, shared memory on this host${this.#copying === 'as usual' ? '' : ' past the cache'}`;
  }

  get #isPlain(): boolean {
    return this.#isNamed && this.#outgoing.isEmpty && this.#incoming.isEmpty && this.#waiting.length === 0;
  }

  get udpPort(): number {
    return this.#base.udpPort;
  }

  get pathMtuMax(): number {
    return this.#base.pathMtuMax;
  }

  get ipIdPolicy(): IpIdPolicy {
    return this.#base.ipIdPolicy;
  }

  get fixedSourcePort(): number | undefined {
    return this.#base.fixedSourcePort;
  }

  get receiveBudgetPackets(): number {
    const { receiveBudgetPackets } = this.#base;
    return this.#isNamed ? receiveBudgetPackets : Math.min(receiveBudgetPackets, BUDGET_PACKETS);
  }

  get onTrain(): BatchedUdpPort['onTrain'] {
    return this.#base.onTrain;
  }

  set onTrain(handler: BatchedUdpPort['onTrain']) {
    this.#base.onTrain = handler;
  }

  get onPause(): (priority: number, durationNs: number) => void {
    return this.#base.onPause;
  }

  set onPause(handler: (priority: number, durationNs: number) => void) {
    this.#base.onPause = handler;
  }

  get onError(): (error: Error) => void {
    return this.#base.onError;
  }

  set onError(handler: (error: Error) => void) {
    this.#base.onError = handler;
  }

  get counters(): Readonly<PortCounters> {
    const { txDatagrams, rxDatagrams, txErrors } = this.#base.counters;
    const own = this.#own;
    return {
      txDatagrams: txDatagrams + own.txDatagrams,
      rxDatagrams: rxDatagrams + own.rxDatagrams,
      txErrors: txErrors + own.txErrors,
    };
  }

  get wakeFd(): number {
    return this.#base.wakeFd;
  }

  async open(): Promise<void> {
    await this.#base.open();
    this.#rx.destinationPort = this.#base.udpPort;
  }

  async share(address: IpAddress, udpPort: number): Promise<boolean> {
    const { nowNs } = this.#options;
    const endNs = nowNs() + SHARE_TIMEOUT_NS;
    this.#outgoing.heardFrom(address, udpPort);
    while (!this.#isClosed && nowNs() < endNs && !this.#outgoing.isAbandoned(address, udpPort)) {
      if (!this.#isReading) this.#forgetOver(nowNs());
      if (!this.#outgoing.offer(address, udpPort, nowNs())) return false;
      if (this.#waiting.length === 0) this.#activateAccepted(nowNs());
      if (this.#outgoing.linkTo(address, udpPort, nowNs()) !== undefined) return true;
      await setTimeout(SHARE_POLL_MS);
    }
    if (this.#isNamed && !this.#isClosed) this.#outgoing.withdraw(address, udpPort);
    return false;
  }

  unshare(address: IpAddress, udpPort: number): void {
    if (this.#isClosed) return;
    this.#outgoing.withdraw(address, udpPort);
    if (this.#options.polled !== true) this.#turnSoon(); // If this port is the peer, it no longer reads the ring.
  }

  beginBatch(nowNs?: number): TxBatch | undefined {
    if (this.#isClosed) return undefined;
    if (this.#isPlain) return this.#socketBatch(nowNs);
    if (this.#waiting.length > 0) this.#flush();
    if (this.#waiting.length > 0 || this.#outgoing.reserved !== undefined) return this.#socketBatch();
    this.#batchNs = nowNs ?? this.#options.nowNs();
    this.#activateAccepted(this.#batchNs);
    this.#spin.onSent(this.#batchNs);
    return this.#outgoing.reserve(BATCH_SLOTS, this.#batchNs) ?? this.#socketBatch();
  }

  #socketBatch(nowNs?: number): TxBatch | undefined {
    const batch = this.#base.beginBatch(nowNs);
    if (batch !== undefined) batch.mayBorrow = this.#options.borrows === true && this.#isPlain;
    return batch;
  }

  sendBatch(batch: TxBatch): void {
    if (this.#isPlain && !this.#isClosed) {
      this.#base.sendBatch(batch);
      return;
    }
    if (batch === this.#outgoing.reserved) this.#commit(batch);
    else if (!this.#isClosed) this.#waiting.push(batch);
    if (this.#isClosed) return;
    this.#flush();
    if (this.#hasUnsent && this.#options.polled !== true) this.#turnSoon();
  }

  /** A new ring must not overtake packets that the socket has not taken yet. */
  #activateAccepted(nowNs: number): void {
    if (!this.#base.hasUnsent) this.#outgoing.activateAccepted(nowNs);
  }

  /** There is no notification when that is over. */
  get #hasUnsent(): boolean {
    return this.#waiting.length > 0 || this.#outgoing.owesDoorbell;
  }

  get hasUnsent(): boolean {
    return this.#hasUnsent || this.#base.hasUnsent;
  }

  #commit(batch: TxBatch): void {
    if (this.#isClosed) batch.count = 0;
    this.#own.txDatagrams += this.#outgoing.commit(batch, this.#batchNs, this.#sendElsewhere);
    if (this.#isClosed) {
      this.#release();
      return;
    }
    this.#outgoing.publish();
    if (this.#elsewhere !== undefined) this.#waiting.push(this.#elsewhere);
    this.#elsewhere = undefined;
  }

  readonly #sendElsewhere = (batch: TxBatch, slot: number): void => {
    this.#elsewhere ??= this.#socketBatch();
    if (this.#elsewhere === undefined) this.#own.txErrors++;
    else appendSlot(batch, slot, this.#elsewhere, this.address.family === 4);
  };

  /** Until a ring is full. While a batch is reserved, no other packet may be put into its ring. */
  #flush(): void {
    if (this.#outgoing.reserved !== undefined) return;
    for (let batch = this.#waiting.at(0); batch !== undefined; batch = this.#waiting.at(0)) {
      if (!this.#deliver(batch)) return;
      this.#waiting.shift();
      this.#waitingSlot = 0;
      this.#base.sendBatch(batch);
    }
    if (this.#outgoing.owesDoorbell) this.#outgoing.publish();
  }

  #deliver(batch: TxBatch): boolean {
    const nowNs = this.#options.nowNs();
    if (this.#waitingSlot === 0) this.#activateAccepted(nowNs);
    const { count, lengths, destinations, destinationPorts } = batch;
    for (let slot = this.#waitingSlot; slot < count; slot++) {
      const link = this.#outgoing.linkTo(destinations[slot], destinationPorts[slot], nowNs);
      if (link === undefined) continue;
      const trafficClass = (batch.dscps[slot] << 2) | batch.ecns[slot];
      if (link.push(batch.payloadView(slot), trafficClass, batch.ipIds[slot])) {
        lengths[slot] = 0;
        this.#own.txDatagrams++;
        continue;
      }
      if (!link.isStalled(nowNs)) {
        this.#waitingSlot = slot;
        this.#outgoing.publish();
        return false;
      }
      lengths[slot] = 0;
      this.#own.txErrors++;
    }
    this.#outgoing.publish();
    return true;
  }

  /** Lost when the peer's socket is full: then the peer is awake anyhow. */
  readonly #sendControl: SendControl = (peer, peerPort, length, write) => {
    const batch = this.#socketBatch();
    if (batch === undefined) return false;
    write(batch.slab, batch.payloadOffset(0));
    batch.count = 1;
    batch.lengths[0] = length;
    batch.destinations[0] = peer;
    batch.destinationPorts[0] = peerPort;
    batch.ecns[0] = 0;
    batch.dscps[0] = 0;
    this.#own.txDatagrams--;
    this.#base.sendBatch(batch);
    return true;
  };

  #fromSocket(datagram: RxDatagram): void {
    const control = readControlDatagram(datagram.bytes, datagram.offset, datagram.length);
    if (control === undefined) {
      this.onDatagram(datagram);
      return;
    }
    this.#own.rxDatagrams--;
    if (control === 'refusal') this.#outgoing.refusedBy(datagram.source, datagram.sourcePort);
    else if (control !== 'doorbell') this.#onRingOffer(control, datagram);
    if (this.#options.polled === true) return;
    this.#isReadingSocket = true;
    this.#turn();
    this.#isReadingSocket = false;
  }

  /** A ring that cannot be opened is ignored: the peer continues over the socket. */
  #onRingOffer(offer: RingOffer, { source, sourcePort }: RxDatagram): void {
    if (!this.#outgoing.isLocal(source)) return;
    const isWelcome = !this.#isNamed || this.#outgoing.hasLinkTo(source, sourcePort);
    if (!isWelcome && !this.#outgoing.isFull) return;
    if (!this.#offerPace.take(this.#options.nowNs())) return;
    if (!isWelcome || this.#incoming.isFull) {
      this.#sendControl(source, sourcePort, DOORBELL_BYTES, writeRefusal);
      return;
    }
    const { address: reader, udpPort: readerPort } = this.#base;
    if (this.#incoming.open(offer, { writer: source, writerPort: sourcePort, reader, readerPort }))
      this.#outgoing.heardFrom(source, sourcePort);
  }

  receive(everything = false): number {
    if (this.#isClosed) return 0;
    if (this.#isPlain) return this.#base.receive();
    if (this.#options.polled !== true) this.#stayAwake();
    if (this.#hasUnsent) this.#flush();
    const fromRings = this.#receiveRings();
    if (++this.#ringLooks < RING_LOOKS && !everything && !this.#incoming.isWaiting) return fromRings;
    if (!this.#isClosed) this.#forgetOver(this.#options.nowNs());
    const fromSocket = this.#base.receive();
    this.#ringLooks = fromSocket > 0 ? RING_LOOKS : 0;
    if (fromSocket === 0) this.#incoming.socketIsEmpty();
    return fromRings + fromSocket;
  }

  /** The event loop polls, most likely again soon: no peer needs to ring until an iteration finds nothing. */
  #stayAwake(): void {
    this.#incoming.wake();
    this.#turnSoon();
  }

  #receiveRings(): number {
    this.#isReading = true;
    const received = this.#incoming.receive(this.#rx, this.#handOver);
    this.#isReading = false;
    this.#own.rxDatagrams += received;
    if (this.#isClosed) this.#release();
    return received;
  }

  /** A peer that has stopped writing most likely does not read either. */
  #forgetOver(nowNs: number): void {
    if (this.#incoming.forgetOver(nowNs)) this.#outgoing.dropOver(nowNs);
  }

  readonly #handOver = (datagram: RxDatagram): void => {
    if (!this.#isClosed) this.onDatagram(datagram);
  };

  wait(timeoutNs: number): boolean {
    if (this.#isClosed) return true;
    const woken =
      !this.#incoming.sleep() || this.#base.wait(this.#hasUnsent ? Math.min(timeoutNs, FULL_SLEEP_NS) : timeoutNs);
    this.#incoming.wake();
    this.#ringLooks = RING_LOOKS;
    return woken;
  }

  readonly #turnSoon = (): void => {
    if (this.#turnPending) return;
    this.#turnPending = true;
    setImmediate(this.#turn);
  };

  readonly #turn = (): void => {
    this.#turnPending = false;
    if (this.#isClosed) return;
    if (this.#hasUnsent) this.#flush();
    const nowNs = this.#options.nowNs();
    if (this.#receiveRings() > 0) {
      this.#spin.onReceived(nowNs);
      this.onDelivered();
    }
    if (!this.#isClosed) this.#forgetOver(nowNs);
    if (this.#incoming.isWaiting && !this.#isReadingSocket) {
      if (this.#base.receive() === 0) this.#incoming.socketIsEmpty();
      else this.onDelivered();
    }
    if (this.#spin.looksAgain(nowNs) || this.#hasUnsent || !this.#incoming.sleep()) this.#turnSoon();
  };

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#release();
    await this.#base.close();
  }

  #release(): void {
    if (this.#isReading || this.#outgoing.reserved !== undefined) return;
    this.#outgoing.close();
    this.#incoming.close();
  }
}
