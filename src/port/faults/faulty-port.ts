/**
 * A UDP socket does not show the IPv4 identification, and sends 0. There `ip-id-lsb` uses numbers 0, 1, 2 ... per
 * direction, like the sender in the SIGCOMM'16 experiment. If the index in a train is the identification, the ICRC is
 * corrected for the indices that remain after others are dropped. A packet that waits for others leaves when enough of
 * them have followed; if none follow it stays, which the peer sees as a loss. A packet that waits for time leaves at
 * the first wake-up of the clock that is passed in.
 */

import type { Clock } from '../../core/clock.js';
import { appendSlot, copySlot } from '../append-slot.js';
import { type Port, type PortCounters, type RxDatagram, TxBatch } from '../datagram.js';
import { PortWrapper } from '../port-wrapper.js';
import { changePacket } from './actions.js';
import { Delayed } from './delayed.js';
import type { FaultPlan, FaultVerdict } from './fault-plan.js';
import { type FaultSubject, newFaultSubject, readBth } from './fault-subject.js';
import { HeldBack } from './held-back.js';

export type OnDropped = (direction: 'sent' | 'received', bytes: Uint8Array, offset: number, length: number) => void;

export class FaultyPort extends PortWrapper {
  readonly #plan: FaultPlan;
  readonly #clock: Clock;
  readonly #onDropped: OnDropped;
  readonly #subject: FaultSubject = newFaultSubject();
  /** Each in a batch of one slot, because its original batch must return to the port. */
  readonly #heldTx = new HeldBack<TxBatch>((held) => this.#emit(held, 0));
  readonly #heldRx = new HeldBack<RxDatagram>((held) => this.onDatagram(held));
  readonly #delayed = new Delayed<() => void>((letGo) => letGo());
  #wakeNs = Number.POSITIVE_INFINITY;
  #cancelWake: () => void = () => {};
  readonly #numbered: boolean;
  readonly #inTrains: boolean;
  #txNumber = 0;
  #rxNumber = 0;
  #out: TxBatch | undefined;
  #unsent = 0;

  constructor(inner: Port, plan: FaultPlan, clock: Clock, onDropped: OnDropped = () => {}) {
    super(inner);
    this.#plan = plan;
    this.#clock = clock;
    this.#onDropped = onDropped;
    this.#inTrains = inner.ipIdPolicy === 'train' && inner.address.family === 4;
    this.#numbered = inner.ipIdPolicy === 'sequential' && inner.address.family === 4;
  }

  override get description(): string {
    return `${this.inner.description} with fault rules`;
  }

  /** Datagrams on the wire: dropped ones are not counted as sent, but are counted as received. */
  override get counters(): Readonly<PortCounters> {
    const counters = this.inner.counters;
    return this.#unsent === 0 ? counters : { ...counters, txErrors: counters.txErrors + this.#unsent };
  }

  /** A batch is given out once there is another one to rebuild it into. */
  override beginBatch(): TxBatch | undefined {
    const out = this.inner.beginBatch();
    if (out === undefined) return undefined;
    const batch = this.inner.beginBatch();
    if (batch === undefined) this.inner.sendBatch(out);
    else this.#out = out;
    return batch;
  }

  /** Rebuilds the batch, so that the order on the wire is exactly what the rules say. */
  override sendBatch(batch: TxBatch): void {
    for (let slot = 0; slot < batch.count; slot++) this.#send(batch, slot);
    this.#flush();
    batch.count = 0;
    this.inner.sendBatch(batch);
  }

  override close(): Promise<void> {
    this.#cancelWake();
    return super.close();
  }

  #send(batch: TxBatch, slot: number): void {
    const { slab, lengths, ipIds } = batch;
    const offset = batch.payloadOffset(slot);
    const verdict = this.#decide('sent', this.#numbered ? ipIds[slot] : this.#txNumber++ & 0xffff, {
      bytes: slab,
      offset,
      length: lengths[slot],
    });
    if (verdict !== undefined) {
      if (verdict.drops) {
        this.#onDropped('sent', slab, offset, lengths[slot]);
        return;
      }
      changeSlot(verdict, batch, slot);
      if (verdict.duplicates) this.#emit(batch, slot);
      if (verdict.behind > 0 && this.#heldTx.hold(takeSlot(batch, slot), verdict.behind)) return;
      if (verdict.delayNs >= 0) {
        const taken = takeSlot(batch, slot);
        const letGo = () => this.#emit(taken, 0);
        if (!this.#delay(letGo, verdict.delayNs)) this.#onDropped('sent', slab, offset, lengths[slot]);
        return;
      }
    }
    this.#emit(batch, slot);
    this.#heldTx.passed();
  }

  /** The verdict on a packet that a rule matches. */
  #decide(
    direction: 'sent' | 'received',
    ipId: number,
    { bytes, offset, length }: Pick<RxDatagram, 'bytes' | 'offset' | 'length'>,
  ): FaultVerdict | undefined {
    const subject = this.#subject;
    subject.ingress = direction === 'sent' ? 'host' : 'wire';
    subject.egress = direction === 'sent' ? 'wire' : 'host';
    subject.ipId = ipId;
    return readBth(subject, bytes, offset, length) ? this.#plan.decide(subject, this.#clock.nowNs()) : undefined;
  }

  #delay(letGo: () => void, delayNs: number): boolean {
    if (!this.#delayed.hold(letGo, this.#clock.nowNs() + delayNs)) return false;
    this.#wakeInTime();
    return true;
  }

  #wakeInTime(): void {
    const { nextNs } = this.#delayed;
    if (nextNs >= this.#wakeNs) return;
    this.#cancelWake();
    this.#wakeNs = nextNs;
    this.#cancelWake = this.#clock.wakeAt(nextNs, () => {
      this.#wakeNs = Number.POSITIVE_INFINITY;
      this.#delayed.release(this.#clock.nowNs());
      this.#flush();
      this.#wakeInTime();
    });
  }

  #flush(): void {
    if (this.#out !== undefined) this.inner.sendBatch(this.#out);
    this.#out = undefined;
  }

  #emit(from: TxBatch, slot: number): void {
    if (this.#out !== undefined && this.#out.count === this.#out.capacity) {
      this.inner.sendBatch(this.#out);
      this.#out = undefined;
    }
    this.#out ??= this.inner.beginBatch();
    if (this.#out === undefined) this.#unsent++;
    else appendSlot(from, slot, this.#out, this.#inTrains);
  }

  protected override receive(datagram: RxDatagram): void {
    const verdict = this.#decide('received', this.#numbered ? datagram.ipId : this.#rxNumber++ & 0xffff, datagram);
    if (verdict === undefined) this.onDatagram(datagram);
    else if (!this.#receiveMatched(datagram, verdict)) return;
    this.#heldRx.passed();
  }

  /** False for a packet that is passed on later, or never. */
  #receiveMatched(datagram: RxDatagram, verdict: FaultVerdict): boolean {
    const { bytes, offset, length } = datagram;
    if (verdict.drops) {
      this.#onDropped('received', bytes, offset, length);
      return false;
    }
    // The port's own record stays as it is: it sets again only what differs from datagram to datagram.
    const changed = { ...datagram };
    changePacket(verdict.actions, changed);
    if (verdict.duplicates) this.onDatagram(changed);
    if (verdict.behind > 0 && this.#heldRx.hold(copyDatagram(changed), verdict.behind)) return false;
    if (verdict.delayNs >= 0) {
      const copy = copyDatagram(changed);
      if (!this.#delay(() => this.onDatagram(copy), verdict.delayNs))
        this.#onDropped('received', bytes, offset, length);
      return false;
    }
    this.onDatagram(changed);
    return true;
  }
}

function changeSlot({ actions }: FaultVerdict, batch: TxBatch, slot: number): void {
  const { slab, lengths, ecns, dscps } = batch;
  const packet = {
    bytes: slab,
    offset: batch.payloadOffset(slot),
    length: lengths[slot],
    ecn: ecns[slot],
    dscp: dscps[slot],
  };
  changePacket(actions, packet);
  lengths[slot] = packet.length;
  ecns[slot] = packet.ecn;
  dscps[slot] = packet.dscp;
}

function takeSlot(batch: TxBatch, slot: number): TxBatch {
  const taken = new TxBatch(1, batch.sources[slot]);
  copySlot(batch, slot, taken, 0);
  return taken;
}

function copyDatagram(datagram: RxDatagram): RxDatagram {
  const { bytes, offset, length } = datagram;
  return { ...datagram, bytes: bytes.slice(offset, offset + length), offset: 0 };
}
