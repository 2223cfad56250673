import process from 'node:process';
import type { LibC } from '../../dgram-ext/libc.js';
import type { IpAddress } from '../../packet/address.js';
import type { RxDatagram } from '../datagram.js';
import type { RingOffer } from './control-datagram.js';
import { PEERS_MAX } from './outgoing-rings.js';
import { isAlive } from './ring-link.js';
import { Segment } from './segment.js';
import { RING_BYTES, type RingEnds, RingReader } from './shared-ring.js';

/** Packets received before sending is served. */
const RECEIVE_TURN = 120;
const CHECK_NS = 1e9;

interface Incoming {
  readonly reader: RingReader;
  readonly segment: Segment;
  readonly pid: number;
  readonly source: IpAddress;
  readonly sourcePort: number;
  /**
   * Earlier packets of the peer may still be in the socket, so the ring is read only after the socket was empty once.
   */
  state: 'new' | 'has packets' | 'read';
}

export class IncomingRings {
  readonly #lib: LibC;
  readonly #incoming: Incoming[] = [];
  #newRings = 0;
  #checkedNs = 0;
  #isAsleep = false;

  constructor(lib: LibC) {
    this.#lib = lib;
  }

  get isEmpty(): boolean {
    return this.#incoming.length === 0;
  }

  get isFull(): boolean {
    return this.#incoming.length === PEERS_MAX;
  }

  /** False: it cannot be opened, and the peer continues over the socket. */
  open({ pid, fd, nonce }: RingOffer, ends: RingEnds): boolean {
    const segment = Segment.open(this.#lib, pid, fd, RING_BYTES);
    if (segment === undefined) return false;
    const reader = RingReader.open(segment.memory, nonce, process.pid, ends);
    if (reader === undefined) {
      segment.close();
      return false;
    }
    const { writer: source, writerPort: sourcePort } = ends;
    this.#incoming.push({ reader, segment, pid, source, sourcePort, state: 'new' });
    this.#newRings++;
    return true;
  }

  /** Returns how many datagrams. */
  receive(rx: RxDatagram, onDatagram: (datagram: RxDatagram) => void): number {
    let received = 0;
    for (const incoming of this.#incoming) {
      const { reader, source, sourcePort } = incoming;
      if (incoming.state !== 'read') {
        if (reader.hasNews) incoming.state = 'has packets';
        continue;
      }
      rx.source = source;
      rx.sourcePort = sourcePort;
      received += reader.receive(rx, RECEIVE_TURN, onDatagram);
    }
    return received;
  }

  get isWaiting(): boolean {
    return this.#newRings > 0 && this.#incoming.some(({ state }) => state === 'has packets');
  }

  /** The socket was found empty after the last {@link receive}: so all packets in new rings are newer. */
  socketIsEmpty(): void {
    if (this.#newRings === 0) return;
    for (const incoming of this.#incoming) {
      if (incoming.state !== 'has packets') continue;
      incoming.state = 'read';
      this.#newRings--;
    }
  }

  /** True: there were some. */
  forgetOver(nowNs: number): boolean {
    const looks = nowNs - this.#checkedNs > CHECK_NS;
    if (looks) this.#checkedNs = nowNs;
    const before = this.#incoming.length;
    for (let i = this.#incoming.length - 1; i >= 0; i--) {
      const { reader, pid } = this.#incoming[i];
      if (reader.isOver || (looks && !isAlive(pid))) this.#forget(i);
    }
    return this.#incoming.length < before;
  }

  /** False: there is something to read already. */
  sleep(): boolean {
    let mayBlock = true;
    this.#isAsleep = true;
    for (const { reader } of this.#incoming) if (!reader.sleep()) mayBlock = false;
    return mayBlock;
  }

  wake(): void {
    if (!this.#isAsleep) return;
    this.#isAsleep = false;
    for (const { reader } of this.#incoming) reader.wake();
  }

  #forget(i: number): void {
    const [{ reader, segment, state }] = this.#incoming.splice(i, 1);
    if (state !== 'read') this.#newRings--;
    reader.close();
    segment.close();
  }

  close(): void {
    while (this.#incoming.length > 0) this.#forget(0);
  }
}
