/** Faults of our requester, and of PSNs at the wrap. */

import { type Mutant, mutant } from './mutant.js';

const COMPLETER = 'qp/completer.ts';
const READS = 'qp/read-requester.ts';
const RETRANSMITTER = 'qp/retransmitter.ts';
const TIMERS = 'retransmit/timers.ts';

const TIMEOUT = 'this.recovery.timeoutNs(ackTimeoutNs(timeout), this.#out.inFlight)';

export const REQUESTER_MUTANTS: readonly Mutant[] = [
  mutant(34, 'compares PSNs as numbers', [
    'qp/responder.ts',
    'const distance = psnDiff(packet.psn, this.expectedPsn);',
    'const distance = packet.psn - this.expectedPsn;',
  ]),
  mutant(36, 'believes an ACK of what was never sent', [
    COMPLETER,
    'if (psnDiff(packet.psn, next) >= 0) {\n      this.#unsent();\n      return;\n    }',
    'if (psnDiff(packet.psn, next) >= 0) packet.psn = psnAdd(out.newPsn, -1);',
  ]),
  mutant(47, 'resumes behind the PSN of a NAK', [
    COMPLETER,
    'psnDiff(psn, out.unacked) > 0 ? out.unacked : psn, out.newPsn, LOSS_DROPPED',
    'psnAdd(psn, 1), out.newPsn, LOSS_DROPPED',
  ]),
  mutant(47, 'takes nothing before a NAK for acknowledged', [
    COMPLETER,
    'const reachesBefore = psnDiff(before, out.unacked) < 0 || this.#acknowledge(before, now);',
    'const reachesBefore = true;',
  ]),
  mutant(50, 'has no timer for what a NAK asked for', [
    RETRANSMITTER,
    'if (this.#retrying && cause !== LOSS_TIMEOUT) return;',
    'if (this.#retrying) return;',
  ]),
  mutant(51, 'fires the timer early', [RETRANSMITTER, TIMEOUT, `${TIMEOUT} / 2`]),
  mutant(52, 'fires the timer late', [RETRANSMITTER, TIMEOUT, `${TIMEOUT} * 6`]),
  {
    ...mutant(53, 'takes a timeout of 0 for a short one', [
      TIMERS,
      'timeout === 0 ? Number.POSITIVE_INFINITY',
      'timeout === 0 ? 1e8',
    ]),
    via: 'agent',
  },
  mutant(54, 'tries once too often', [
    RETRANSMITTER,
    'if (this.retriesLeft === 0) return false;',
    'if (this.retriesLeft < 0) return false;',
  ]),
  mutant(54, 'tries once too seldom', [
    RETRANSMITTER,
    'if (this.retriesLeft === 0) return false;',
    'if (this.retriesLeft === 1) return false;',
  ]),
  mutant(55, 'grants no retries for progress', [
    RETRANSMITTER,
    'this.#grantRetries();\n    this.#ackDeadlineNs = NEVER;',
    'this.#ackDeadlineNs = NEVER;',
  ]),
  mutant(56, 'restarts the timer for every ACK', [
    COMPLETER,
    'if (psnDiff(packet.psn, out.unacked) < 0) this.#stale();\n      else if (!this.#acknowledge',
    'if (psnDiff(packet.psn, out.unacked) < 0) this.#retransmitter.progress(now);\n      else if (!this.#acknowledge',
  ]),
  mutant(58, 'does not wait as long as an RNR NAK says', [
    RETRANSMITTER,
    'this.#rnrDeadlineNs = now + pauseNs;',
    'this.#rnrDeadlineNs = now + pauseNs / 2;',
  ]),
  mutant(59, 'counts RNR retries that have no end', [
    RETRANSMITTER,
    'if (this.#parts.attributes.rnrRetry !== RNR_RETRY_INFINITE) {',
    'if (this.#parts.attributes.rnrRetry >= 0) {',
  ]),
  mutant(59, 'has no end of RNR retries', [
    RETRANSMITTER,
    'if (this.rnrRetriesLeft === 0) {',
    'if (this.rnrRetriesLeft < -9) {',
  ]),
  mutant(63, 'asks for the whole READ again', [
    READS,
    'writeReadRequest(this.#parts, batch, wqe, psn, offset, bytes);',
    'writeReadRequest(this.#parts, batch, wqe, psn, 0, bytes + offset);',
  ]),
  mutant(64, 'takes no MIDDLE for the begin of an answer', [
    COMPLETER,
    'if (index < 0 || !isAnsweredBy(out.kindOf(index), kind)) {',
    'if (index < 0 || out.kindOf(index) !== kind || (packet.opcode === RC_READ_RESPONSE_MIDDLE && psnOffset(psn, out.firstPsn[index & out.mask]) === 1)) {',
  ]),
  mutant(66, 'has one READ too many outstanding', [
    READS,
    'return this.#side.out.reads.count < this.#parts.attributes.maxRdAtomic;',
    'return this.#side.out.reads.count <= this.#parts.attributes.maxRdAtomic;',
  ]),
];
