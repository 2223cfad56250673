/**
 * The answer without data that a responder has pending: an ACK, or the NAK that replaces it (IBTA vol. 1 §9.7.5.1,
 * §9.7.5.2). One covers everything before it, even if several packets requested one.
 */

import { COUNTER } from '../memory/ring/counters.js';
import { NAK_PSN_SEQUENCE, SYNDROME_ACK, SYNDROME_RNR } from '../packet/aeth.js';
import * as op from '../packet/opcode.js';
import { psnAdd } from '../packet/psn.js';
import { BTH_MIGREQ, ICRC_BYTES, SACK_BITMAP_BYTES_MAX, writeAeth, writeBth } from '../packet/roce.js';
import type { TxBatch } from '../port/datagram.js';
import type { ReceiverRecovery } from '../retransmit/recovery.js';
import type { IntEchoState } from './int-echo-state.js';
import type { QueuePairParts } from './transport.js';

type Parts = Pick<QueuePairParts, 'host' | 'attributes' | 'link'>;

const PENDING_NOTHING = 0;
const PENDING_ACK = 1;
const PENDING_SEQUENCE_NAK = 2;
const PENDING_RNR_NAK = 3;
const PENDING_FATAL_NAK = 4;

export class Acknowledger {
  readonly #parts: Parts;
  readonly #intEcho: IntEchoState;
  #pending = PENDING_NOTHING;
  #fatalSyndrome = 0;
  #fatalPsn = 0;

  constructor(parts: Parts, intEcho: IntEchoState) {
    this.#parts = parts;
    this.#intEcho = intEcho;
  }

  get isPending(): boolean {
    return this.#pending !== PENDING_NOTHING;
  }

  get isAckAlone(): boolean {
    return this.#pending === PENDING_ACK;
  }

  /** A NAK is pending that stops execution: later packets will be retransmitted, or never executed. */
  get isRefusing(): boolean {
    return this.#pending >= PENDING_RNR_NAK;
  }

  /** The NAK is pending that is the last packet of the queue pair. */
  get isFatal(): boolean {
    return this.#pending === PENDING_FATAL_NAK;
  }

  clear(): void {
    this.#pending = PENDING_NOTHING;
  }

  acknowledge(): void {
    this.#pending = Math.max(this.#pending, PENDING_ACK);
  }

  reportGap(): void {
    this.#pending = Math.max(this.#pending, PENDING_SEQUENCE_NAK);
  }

  /** The expected packet has arrived: a report that it is missing is void. */
  gapFilled(): void {
    if (this.#pending === PENDING_SEQUENCE_NAK || this.#pending === PENDING_RNR_NAK) this.#pending = PENDING_ACK;
  }

  notReady(): void {
    this.#pending = PENDING_RNR_NAK;
  }

  refuse(syndrome: number, psn: number): void {
    this.#pending = PENDING_FATAL_NAK;
    this.#fatalSyndrome = syndrome;
    this.#fatalPsn = psn;
  }

  emit(batch: TxBatch, expectedPsn: number, msn: number, recovery: ReceiverRecovery, now: number): void {
    const { host, attributes, link } = this.#parts;
    const { counters } = host;
    const pending = this.#pending;
    this.#pending = PENDING_NOTHING;
    let syndrome = SYNDROME_ACK;
    let psn = psnAdd(expectedPsn, -1);
    let bitmapBytes = 0;
    if (pending === PENDING_ACK || pending === PENDING_SEQUENCE_NAK) {
      bitmapBytes = Math.min(recovery.bitmapBytes(expectedPsn), SACK_BITMAP_BYTES_MAX);
    }
    if (bitmapBytes > 0 || pending === PENDING_SEQUENCE_NAK) {
      syndrome = NAK_PSN_SEQUENCE;
      psn = expectedPsn;
      counters[bitmapBytes > 0 ? COUNTER.sack_sent : COUNTER.resp_nak_sequence]++;
    } else if (pending === PENDING_RNR_NAK) {
      syndrome = SYNDROME_RNR | (attributes.minRnrTimer & 0x1f);
      psn = expectedPsn;
    } else if (pending === PENDING_FATAL_NAK) {
      syndrome = this.#fatalSyndrome;
      psn = this.#fatalPsn;
      counters[COUNTER.resp_nak_fatal]++;
    }
    const b = batch.slab;
    const start = batch.payloadOffset(batch.count);
    let o = writeBth(
      b,
      start,
      bitmapBytes > 0 ? op.VENDOR_SACK : op.RC_ACK,
      BTH_MIGREQ,
      attributes.destQpn,
      false,
      psn,
    );
    o = writeAeth(b, o, syndrome, msn);
    if (bitmapBytes > 0) {
      recovery.writeBitmap(expectedPsn, b, o, bitmapBytes);
      o += bitmapBytes;
    }
    counters[COUNTER.tx_ack_packets]++;
    o = this.#intEcho.append(b, start, o + ICRC_BYTES, now) - ICRC_BYTES;
    link.seal(batch, o);
  }
}
