/**
 * Any port with fault rules on what it sends (direction `host>wire`) and receives (`wire>host`).
 *
 * A UDP socket does not show the IPv4 identification, and sends 0. There `ip-id-lsb` sees numbers of its own: 0, 1, 2 ... per
 * direction, as the sender in the SIGCOMM'16 experiment counted. Where the place in a train is the identification, the ICRC is corrected
 * for the places that datagrams have once others are gone.
 * A packet that is held back leaves when enough others have followed; if none follow it stays, which the peer sees as a loss.
 */

import { appendSlot, copySlot } from '../port/append-slot.js';
import { type Port, type PortCounters, type RxDatagram, TxBatch } from '../port/datagram.js';
import { PortWrapper } from '../port/port-wrapper.js';
import { type FaultPlan, flipBit } from './fault-plan.js';
import { type FaultSubject, newFaultSubject, readBth } from './fault-subject.js';
import { FAULT_CORRUPT, FAULT_DELAY, FAULT_DROP, FAULT_DUPLICATE } from './grammar.js';
import { HeldBack } from './held-back.js';

/** Called with a datagram that a rule dropped: BTH to ICRC is `bytes[offset, offset + length)`, valid during the call. */
export type OnDropped = (direction: 'sent' | 'received', bytes: Uint8Array, offset: number, length: number) => void;

/** A port whose traffic a {@link FaultPlan} drops, corrupts, duplicates and reorders in both directions. */
export class FaultyPort extends PortWrapper {
  readonly #plan: FaultPlan;
  readonly #onDropped: OnDropped;
  readonly #subject: FaultSubject = newFaultSubject();
  /** Each in a batch of one slot, because the batch it came in must go back to the port. */
  readonly #heldTx = new HeldBack<TxBatch>((held) => this.#emit(held, 0));
  readonly #heldRx = new HeldBack<RxDatagram>((held) => this.onDatagram(held));
  /** Whether datagrams carry numbers of their own; otherwise the counters below stand in. */
  readonly #numbered: boolean;
  /** Whether the identification is the place in a train. */
  readonly #inTrains: boolean;
  #txNumber = 0;
  #rxNumber = 0;
  /** The batch that the next one is rebuilt into. */
  #out: TxBatch | undefined;
  /** Datagrams lost because the port had no batch free for those that were added. */
  #unsent = 0;

  /** `onDropped` is called with every datagram that a rule drops; the bytes are valid during the call. */
  constructor(inner: Port, plan: FaultPlan, onDropped: OnDropped = () => {}) {
    super(inner);
    this.#plan = plan;
    this.#onDropped = onDropped;
    this.#inTrains = inner.ipIdPolicy === 'train' && inner.address.family === 4;
    this.#numbered = inner.ipIdPolicy === 'sequential' && inner.address.family === 4;
  }

  override get description(): string {
    return `${this.inner.description} with fault rules`;
  }

  /** What crossed the wire: dropped datagrams are not counted as sent, and are counted as received. */
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
    if (this.#out !== undefined) this.inner.sendBatch(this.#out);
    this.#out = undefined;
    batch.count = 0;
    this.inner.sendBatch(batch);
  }

  #send(batch: TxBatch, slot: number): void {
    const { slab, lengths, ipIds } = batch;
    const offset = batch.payloadOffset(slot);
    const subject = this.#subject;
    subject.ingress = 'host';
    subject.egress = 'wire';
    subject.ipId = this.#numbered ? ipIds[slot] : this.#txNumber++ & 0xffff;
    if (readBth(subject, slab, offset, lengths[slot])) {
      const { action, bit, behind } = this.#plan.decide(subject);
      if (action === FAULT_DROP) {
        this.#onDropped('sent', slab, offset, lengths[slot]);
        return;
      }
      if (action === FAULT_DELAY && this.#heldTx.hold(takeSlot(batch, slot), behind)) return;
      if (action === FAULT_CORRUPT) flipBit(slab, offset, bit);
      if (action === FAULT_DUPLICATE) this.#emit(batch, slot);
    }
    this.#emit(batch, slot);
    this.#heldTx.passed();
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
    const { bytes, offset, length } = datagram;
    const subject = this.#subject;
    subject.ingress = 'wire';
    subject.egress = 'host';
    subject.ipId = this.#numbered ? datagram.ipId : this.#rxNumber++ & 0xffff;
    if (readBth(subject, bytes, offset, length)) {
      const { action, bit, behind } = this.#plan.decide(subject);
      if (action === FAULT_DROP) {
        this.#onDropped('received', bytes, offset, length);
        return;
      }
      if (action === FAULT_DELAY && this.#heldRx.hold(copyDatagram(datagram), behind)) return;
      if (action === FAULT_CORRUPT) flipBit(bytes, offset, bit);
      if (action === FAULT_DUPLICATE) this.onDatagram(datagram);
    }
    this.onDatagram(datagram);
    this.#heldRx.passed();
  }
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
