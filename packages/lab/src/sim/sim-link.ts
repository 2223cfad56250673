/**
 * Each direction serializes packets one after another, then they fly. Corrupted bits are flipped in the copy that
 * travels; the ICRC is never helped.
 */

import {
  changePacket,
  type FaultCounters,
  type FaultPlan,
  type FaultVerdict,
  HeldBack,
  newFaultCounters,
  newFaultSubject,
  readBth,
} from 'rocev2/internal/faults';
import { linkOverheadBytes } from 'rocev2/internal/packet';
import { datagramOf, type RxDatagram, type TxBatch } from 'rocev2/internal/port';
import type { EventQueue } from './event-queue.js';
import type { SimHost } from './sim-host.js';

interface SimLinkOptions {
  readonly events: EventQueue;
  readonly rateBps: number;
  readonly delayNs: number;
  /** Direction names are those of the hosts' roles: `a>b` and `b>a`. */
  readonly faults?: FaultPlan;
  readonly onPacket?: (direction: 'a>b' | 'b>a', bytes: Uint8Array) => void;
}

interface SimLinkCounters extends FaultCounters {
  packets: number;
  bytes: number;
  dropped: number;
}

class Direction {
  readonly counters: SimLinkCounters = { packets: 0, bytes: 0, dropped: 0, ...newFaultCounters() };
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
      const verdict = faults.decide(subject, events.nowNs);
      if (verdict !== undefined && !this.#applyVerdict(datagram, verdict)) return;
    }
    this.#fly(datagram);
    this.#held.passed();
  }

  /** False for a packet that is forwarded later, or never. */
  #applyVerdict(datagram: RxDatagram, verdict: FaultVerdict): boolean {
    const { counters } = this;
    const { delayNs, behind } = verdict;
    if (verdict.drops) {
      counters.dropped++;
      return false;
    }
    changePacket(verdict.actions, datagram, counters);
    if (verdict.duplicates) {
      counters.faults_duplicated++;
      this.#fly({ ...datagram, bytes: datagram.bytes.slice() });
    }
    if (behind > 0 && this.#held.hold(datagram, behind)) {
      counters.faults_delayed++;
      return false;
    }
    if (delayNs < 0) return true;
    counters.faults_delayed++;
    this.#options.events.after(delayNs, () => this.#fly(datagram));
    return false;
  }

  #fly(datagram: RxDatagram): void {
    const { events, delayNs, rateBps } = this.#options;
    const flight = delayNs + (datagram.length * 8e9) / rateBps;
    events.after(flight, () => this.#to.receive(datagram));
  }
}

export class SimLink {
  readonly #ab: Direction;
  readonly #ba: Direction;

  constructor(a: SimHost, b: SimHost, options: SimLinkOptions) {
    this.#ab = new Direction('a>b', b, options);
    this.#ba = new Direction('b>a', a, options);
    a.connect((batch) => this.#ab.send(batch));
    b.connect((batch) => this.#ba.send(batch));
  }

  get counters(): { readonly 'a>b': SimLinkCounters; readonly 'b>a': SimLinkCounters } {
    return { 'a>b': this.#ab.counters, 'b>a': this.#ba.counters };
  }
}
