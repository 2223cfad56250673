/**
 * Detects retransmissions of packets with payload: a PSN not newer than the newest of its sequence. Requests, and READ
 * responses, to one queue pair have separate sequences.
 */

import { OP_READ_RESPONSE } from '../../packet/opcode.js';
import { psnAdd, psnDiff } from '../../packet/psn.js';
import type { RocePacket } from '../../packet/roce.js';

/** Sequences remembered; beyond that all are dropped, and the next packet of each restarts. */
const SEQUENCES_MAX = 4096;
const RESPONSE_SEQUENCE = 1 << 24;

export class SentSequences {
  /** The last packet taken had been sent before. */
  isRepeated = false;
  /** It did not follow the one before it either: the sender has gone back. */
  hasGoneBack = false;
  /** The newest PSN of its sequence before it. */
  newestPsn = 0;
  readonly #sequences = new Map<number, { lastPsn: number; newestPsn: number }>();

  /**
   * Takes packets in the order sent; those without payload, or not of a reliable connection, do not belong to a
   * sequence.
   */
  take({ destQpn, psn, payloadBytes, info }: RocePacket): void {
    this.isRepeated = false;
    this.hasGoneBack = false;
    if (payloadBytes === 0 || info.transport !== 'RC') return;
    const key = destQpn + (info.kind === OP_READ_RESPONSE ? RESPONSE_SEQUENCE : 0);
    const sequence = this.#sequences.get(key);
    if (sequence === undefined) {
      if (this.#sequences.size >= SEQUENCES_MAX) this.#sequences.clear();
      this.#sequences.set(key, { lastPsn: psn, newestPsn: psn });
      return;
    }
    this.newestPsn = sequence.newestPsn;
    this.isRepeated = psnDiff(psn, sequence.newestPsn) <= 0;
    this.hasGoneBack = this.isRepeated && psn !== psnAdd(sequence.lastPsn, 1);
    sequence.lastPsn = psn;
    if (!this.isRepeated) sequence.newestPsn = psn;
  }
}
