/**
 * The receiving half of an unreliable connection (IBTA vol. 1 §9.8.2.2): a message whose packets all arrive in order is
 * delivered, any other is dropped silently as a whole. The first packet of a message begins a new one with any PSN.
 *
 * A receive WQE that an unfinished message took serves the next one.
 */

import { COUNTER } from '../memory/ring/counters.js';
import { NAK_REMOTE_OPERATION } from '../packet/aeth.js';
import { PLACE_FIRST, PLACE_ONLY } from '../packet/opcode.js';
import { psnAdd, psnDiff } from '../packet/psn.js';
import type { RocePacket } from '../packet/roce.js';
import type { Lifecycle } from './lifecycle.js';
import { NOT_READY, PLACED_LAST, REFUSED, Reassembler } from './reassembler.js';
import type { QueuePairParts } from './transport.js';

export class UcResponder {
  readonly #counters: Float64Array;
  readonly #lifecycle: Lifecycle;
  readonly #reassembler: Reassembler;
  expectedPsn = 0;
  msn = 0;
  /** Arriving packets belong to a message that was dropped: the next one begins with a FIRST or ONLY packet. */
  #dropping = false;

  constructor(parts: QueuePairParts) {
    this.#counters = parts.host.counters;
    this.#lifecycle = parts.lifecycle;
    this.#reassembler = new Reassembler(parts);
  }

  start(psn: number): void {
    this.expectedPsn = psn;
    this.msn = 0;
    this.#dropping = false;
    this.#reassembler.endMessage();
  }

  flush(): void {
    this.#reassembler.endMessage();
    this.#reassembler.receives.flush();
  }

  discard(): void {
    this.expectedPsn = 0;
    this.msn = 0;
    this.#reassembler.endMessage();
    this.#reassembler.receives.discard();
  }

  receive(packet: RocePacket, bytes: Uint8Array): void {
    const distance = psnDiff(packet.psn, this.expectedPsn);
    const { place } = packet.info;
    const begins = place === PLACE_FIRST || place === PLACE_ONLY;
    if (distance !== 0) this.#counters[distance > 0 ? COUNTER.out_of_sequence : COUNTER.duplicate_request]++;
    if (distance < 0 && !begins) return; // A late copy: it belongs to no message that could still be delivered.
    this.expectedPsn = psnAdd(packet.psn, 1);
    if (begins) {
      if (this.#reassembler.isInMessage) this.#dropMessage(); // Its end is missing.
      this.#dropping = false;
    } else if (distance > 0) this.#dropMessage();
    if (this.#dropping) return;
    if (!this.#reassembler.isInSequence(packet)) this.#dropMessage();
    else this.#execute(packet, bytes);
  }

  #execute(packet: RocePacket, bytes: Uint8Array): void {
    const reassembler = this.#reassembler;
    const verdict = reassembler.place(packet, bytes);
    if (verdict === PLACED_LAST) {
      this.msn = psnAdd(this.msn, 1);
      reassembler.complete(packet);
    } else if (verdict === NOT_READY) {
      this.#counters[COUNTER.out_of_buffer]++;
      this.#dropMessage();
    } else if (verdict === REFUSED) this.#refuse();
  }

  /** A missing receive buffer is a local error: the queue pair stops. */
  #refuse(): void {
    const { refusedSyndrome, refusedStatus, receives } = this.#reassembler;
    if (refusedSyndrome !== NAK_REMOTE_OPERATION) {
      this.#dropMessage();
      return;
    }
    this.#reassembler.endMessage();
    receives.fail(refusedStatus);
    this.#lifecycle.enterError();
  }

  /** The message is lost as a whole; it is counted once, however many of its packets arrive. */
  #dropMessage(): void {
    if (!this.#dropping) this.#counters[COUNTER.uc_messages_dropped]++;
    this.#dropping = true;
    this.#reassembler.endMessage();
  }
}
