/**
 * A full-duplex link between two simulated hosts: rate, delay, fault rules. Each direction serializes packets one after another, then
 * they fly. Corrupted bits are flipped in the copy that travels; the ICRC is never helped.
 */

import {
  changeBytes,
  FAULT_BLEACH,
  FAULT_CHANGES,
  FAULT_CORRUPT,
  FAULT_DELAY,
  FAULT_DROP,
  FAULT_DUPLICATE,
  FAULT_MARK,
  FAULT_REORDER,
  FAULT_REWRITE,
  FAULT_TRIM,
  type FaultPlan,
  type FaultVerdict,
  HeldBack,
  newFaultSubject,
  readBth,
} from 'rocev2/internal/faults';
import { ECN_NOT_ECT, linkOverheadBytes } from 'rocev2/internal/packet';
import { datagramOf, ECN_CE, type RxDatagram, type TxBatch } from 'rocev2/internal/port';
import type { EventQueue } from './event-queue.js';
import type { SimHost } from './sim-host.js';

interface SimLinkOptions {
  readonly events: EventQueue;
  /** Bits per second; Infinity takes no time. */
  readonly rateBps: number;
  /** One way. */
  readonly delayNs: number;
  /** Direction names are those of the hosts' roles: `a>b` and `b>a`. */
  readonly faults?: FaultPlan;
  /** Sees every packet as it is sent, before faults. The bytes are valid during the call. */
  readonly onPacket?: (direction: 'a>b' | 'b>a', bytes: Uint8Array) => void;
}

/** What a direction has carried. */
interface SimLinkCounters {
  packets: number;
  bytes: number;
  dropped: number;
  corrupted: number;
  duplicated: number;
  /** Held back, for packets or for time. */
  delayed: number;
  marked: number;
  bleached: number;
  trimmed: number;
  rewritten: number;
}

class Direction {
  readonly counters: SimLinkCounters = {
    packets: 0,
    bytes: 0,
    dropped: 0,
    corrupted: 0,
    duplicated: 0,
    delayed: 0,
    marked: 0,
    bleached: 0,
    trimmed: 0,
    rewritten: 0,
  };
  readonly #name: 'a>b' | 'b>a';
  readonly #to: SimHost;
  readonly #options: SimLinkOptions;
  readonly #subject = newFaultSubject();
  readonly #held = new HeldBack<RxDatagram>((datagram) => this.#fly(datagram));

  constructor(name: 'a>b' | 'b>a', to: SimHost, options: SimLinkOptions) {
    this.#name = name;
    this.#to = to;
    this.#options = options;
    this.#subject.ingress = name[0];
    this.#subject.egress = name[2];
  }

  /** Sends slot 0 of the batch; returns when the wire is free again. */
  send(batch: TxBatch): number {
    const { events, rateBps, onPacket } = this.#options;
    const bytes = batch.payloadView(0);
    const overhead = linkOverheadBytes(batch.sources[0].family);
    this.counters.packets++;
    this.counters.bytes += bytes.length;
    onPacket?.(this.#name, bytes);
    this.#pass(datagramOf(batch, 0));
    return events.nowNs + ((bytes.length + overhead) * 8e9) / rateBps;
  }

  #pass(datagram: RxDatagram): void {
    const { faults, events } = this.#options;
    const subject = this.#subject;
    if (faults !== undefined && readBth(subject, datagram.bytes, datagram.offset, datagram.length)) {
      subject.ipId = datagram.ipId;
      if (!this.#strike(datagram, faults.decide(subject, events.nowNs))) return;
    }
    this.#fly(datagram);
    this.#held.passed();
  }

  /** False for a packet that goes on later, or never. */
  #strike(datagram: RxDatagram, verdict: FaultVerdict): boolean {
    const { counters } = this;
    const { bits, delayNs, behind } = verdict;
    if ((bits & FAULT_DROP) !== 0) {
      counters.dropped++;
      return false;
    }
    if ((bits & FAULT_CHANGES) !== 0) {
      datagram.length = changeBytes(verdict, datagram.bytes, datagram.offset, datagram.length);
      if ((bits & FAULT_REWRITE) !== 0) counters.rewritten++;
      if ((bits & FAULT_TRIM) !== 0) counters.trimmed++;
      if ((bits & FAULT_CORRUPT) !== 0) counters.corrupted++;
    }
    if ((bits & FAULT_MARK) !== 0) {
      counters.marked++;
      datagram.ecn = ECN_CE;
    }
    if ((bits & FAULT_BLEACH) !== 0) {
      counters.bleached++;
      datagram.ecn = ECN_NOT_ECT;
    }
    if ((bits & FAULT_DUPLICATE) !== 0) {
      counters.duplicated++;
      this.#fly({ ...datagram, bytes: datagram.bytes.slice() });
    }
    if ((bits & FAULT_REORDER) !== 0 && this.#held.hold(datagram, behind)) {
      counters.delayed++;
      return false;
    }
    if ((bits & FAULT_DELAY) === 0) return true;
    counters.delayed++;
    this.#options.events.after(delayNs, () => this.#fly(datagram));
    return false;
  }

  #fly(datagram: RxDatagram): void {
    const { events, delayNs, rateBps } = this.#options;
    const flight = delayNs + (datagram.length * 8e9) / rateBps;
    events.after(flight, () => this.#to.receive(datagram));
  }
}

/** Connects two hosts directly, without Ethernet frames or a switch. */
export class SimLink {
  readonly #ab: Direction;
  readonly #ba: Direction;

  constructor(a: SimHost, b: SimHost, options: SimLinkOptions) {
    this.#ab = new Direction('a>b', b, options);
    this.#ba = new Direction('b>a', a, options);
    a.connect((batch) => this.#ab.send(batch));
    b.connect((batch) => this.#ba.send(batch));
  }

  /** Packets and faults of each direction so far. */
  get counters(): { readonly 'a>b': SimLinkCounters; readonly 'b>a': SimLinkCounters } {
    return { 'a>b': this.#ab.counters, 'b>a': this.#ba.counters };
  }
}
