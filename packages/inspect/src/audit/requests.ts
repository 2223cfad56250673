/** PSNs become positions, which count on without wrap from the first request seen. */

import {
  HDR_RETH,
  OP_ACK,
  OP_ATOMIC,
  OP_READ_REQUEST,
  OP_READ_RESPONSE,
  OP_SEND,
  OP_WRITE,
  PLACE_ONLY,
  PSN_HALF,
  psnAdd,
  psnDiff,
  type RocePacket,
} from 'rocev2/internal/packet';
import { EndToEndCredits } from './credits.js';
import { Holes } from './holes.js';
import { MessageCounts } from './message-counts.js';
import { MessageOrder } from './message-order.js';
import { type ReadSpan, ReadSpans } from './read-spans.js';
import { RecoveryWatch } from './recovery-watch.js';
import { Refusals } from './refusals.js';
import { RetryTimer } from './retry-timer.js';
import type { RuleReporter } from './rule-reporter.js';

const RESTART_PSNS = 0x10000;
/** Identifications this small may be places in a train of datagrams, which restart with each train. */
const TRAIN_IDS = 128;
const ID_RUN = 4;
/** Captures may put packets of two directions in the wrong order, when they are this close. */
export const MISORDER_NS = 20_000;
const MTU_MAX = 4096;
const MTU_MIN = 256;
/** Rule 39. */
const UNASKED = 'a message ends without asking for an acknowledgement';

interface GhostAnswer {
  readonly position: number;
  readonly packet: number;
  readonly timeNs: number;
}

interface OpenNak {
  readonly position: number;
  readonly packet: number;
  newRequests: number;
}

export class Requests {
  next = -1;
  /** The first request of the connection has position 0; otherwise position 0 may be a retransmission. */
  isFromStart = false;
  wholeFrom = 0;
  /** Answers to positions from here on are known to be answers to these requests; Infinity: none is. */
  answersKnownFrom = Number.POSITIVE_INFINITY;
  acked = -1;
  readonly spans = new ReadSpans();
  readonly messages = new MessageCounts();
  readonly order = new MessageOrder();
  readonly recovery = new RecoveryWatch();
  readonly timer = new RetryTimer();
  readonly credits = new EndToEndCredits();
  readonly refusals = new Refusals();
  readonly holes = new Holes();
  readLimit = 0;
  /** MSN of the responder when `messages` counted 0; -1: not known. */
  msnBase = -1;
  /** No message is missing, so that the MSN of answers can be checked. */
  countsMessages = true;
  ghost: GhostAnswer | undefined;
  nak: OpenNak | undefined;
  #firstPsn = 0;
  /** PSNs that the newest READ may take beyond `next`, because the path MTU is not known. */
  #slack = 0;
  /** What was known before a READ of unknown length came; undefined: there is no doubt, or it cannot be removed. */
  #doubt: { readonly wholeFrom: number; readonly countsMessages: boolean } | undefined;
  #lastId = -1;
  #idRun = 0;

  begin(startPsn: number): void {
    this.next = 0;
    this.#firstPsn = startPsn;
    this.isFromStart = true;
    this.order.begin();
    this.msnBase = 0;
  }

  isUnsent(position: number): boolean {
    return position >= this.next + this.#slack;
  }

  position(psn: number): number {
    return this.next + psnDiff(psn, this.psn(this.next));
  }

  psn(position: number): number {
    return psnAdd(this.#firstPsn, position % 0x1000000);
  }

  canAnswer(psn: number, kind: number): boolean {
    if (this.next < 0) return false;
    const position = this.position(psn);
    if (position < Math.max(this.acked, this.next - RESTART_PSNS) || position >= this.next + this.#slack) return false;
    const span = this.spans.find(position);
    if (kind === OP_ACK) return true;
    return span !== undefined && span.isRead === (kind === OP_READ_RESPONSE);
  }

  isForeign(psn: number): boolean {
    if (this.next < 0) return false;
    const distance = psnDiff(psn, this.psn(this.next));
    // What came before the first request that was seen may be retransmitted, unless that was the first of all.
    const earliest = this.isFromStart ? 0 : -RESTART_PSNS;
    return distance > RESTART_PSNS + this.#slack || this.next + distance < earliest;
  }

  takeReliable(packet: RocePacket, ipId: number, timeNs: number, reporter: RuleReporter): void {
    const idFollows = this.#idFollows(ipId);
    if (this.next < 0) this.#startAt(packet.psn);
    const position = this.position(packet.psn);
    const ahead = position - this.next;
    if (ahead < 0) this.#takeAgain(packet, position, timeNs, idFollows, reporter);
    else {
      if (ahead > 0) this.#skip(packet, position, timeNs, idFollows, reporter);
      else {
        reporter.pass(33);
        if (this.#slack > 0) this.#endOfRead(position);
        this.#answeredTooEarly(position, timeNs, reporter);
      }
      this.#takeNew(packet, position, timeNs, idFollows, reporter);
    }
  }

  takeUnreliable(packet: RocePacket, ipId: number, reporter: RuleReporter): void {
    const idFollows = this.#idFollows(ipId);
    if (this.next < 0) this.#startAt(packet.psn);
    const position = this.position(packet.psn);
    if (position < this.next) return;
    if (position > this.next) this.#skip(packet, position, 0, idFollows, reporter);
    else reporter.pass(33);
    this.next = position + 1;
    this.order.take(packet, reporter);
  }

  learnMtu(mtu: number): void {
    if (this.order.mtu !== 0) return;
    this.order.mtu = mtu;
    const isWhole = this.spans.setEnds((span) => span.first + packetsOf(span.bytes, mtu) - 1);
    const newest = this.spans.newest;
    if (this.#slack > 0 && newest !== undefined) this.#endOfRead(newest.last + 1);
    if (isWhole && this.#doubt !== undefined) {
      this.wholeFrom = this.#doubt.wholeFrom;
      this.countsMessages = this.#doubt.countsMessages;
    }
    this.#doubt = undefined;
  }

  #startAt(psn: number): void {
    this.next = 0;
    this.#firstPsn = psn;
    this.order.forget();
  }

  #idFollows(ipId: number): boolean {
    const follows = ipId >= 0 && ipId === ((this.#lastId + 1) & 0xffff);
    this.#idRun = follows ? this.#idRun + 1 : 0;
    this.#lastId = ipId;
    return this.#idRun >= ID_RUN && ipId >= TRAIN_IDS;
  }

  #skip(packet: RocePacket, position: number, timeNs: number, idFollows: boolean, reporter: RuleReporter): void {
    const ahead = position - this.next;
    if (ahead <= this.#slack) {
      this.#endOfRead(position);
      this.#doubt ??= { wholeFrom: this.wholeFrom, countsMessages: this.countsMessages };
      this.wholeFrom = position; // a packet after the READ may also be missing
      this.countsMessages = false;
      this.order.forget();
      return;
    }
    const [from, to] = [this.next, position - 1];
    const range = from === to ? `PSN ${hex(this.psn(from))}` : `PSNs ${hex(this.psn(from))} to ${hex(this.psn(to))}`;
    if (idFollows) {
      reporter.violation(
        33,
        `${range} skipped before ${packet.info.name}, and the IP identification shows that no packet is missing`,
      );
      this.refusals.skipped(from, reporter);
    } else
      reporter.cannotTell(
        33,
        `${range} missing before ${packet.info.name}: lost before the place of the capture, or by it`,
      );
    this.holes.add(from, to, timeNs);
    this.wholeFrom = position;
    this.#doubt = undefined;
    this.countsMessages = false;
    this.ghost = undefined;
    this.order.forget();
  }

  #endOfRead(next: number): void {
    const newest = this.spans.newest;
    if (newest !== undefined) {
      newest.nextAt = next;
      if (this.next === next) newest.last = next - 1;
    }
    this.next = next;
    this.#slack = 0;
    this.messages.moveNewest(next - 1);
  }

  /** An answer has acknowledged PSNs that were not sent, as this request proves by being the next one. */
  #answeredTooEarly(position: number, timeNs: number, reporter: RuleReporter): void {
    const ghost = this.ghost;
    if (ghost === undefined) return;
    this.ghost = undefined;
    const psn = hex(this.psn(ghost.position));
    if (timeNs - ghost.timeNs > MISORDER_NS && position <= ghost.position) {
      reporter.violation(
        36,
        `packet ${ghost.packet} answers PSN ${psn}, before PSN ${hex(this.psn(position))} was sent for the first time`,
        ghost.packet,
      );
    } else
      reporter.cannotTell(
        36,
        `packet ${ghost.packet} answers PSN ${psn}, which the capture shows later or not at all`,
        ghost.packet,
      );
  }

  #takeNew(packet: RocePacket, position: number, timeNs: number, idFollows: boolean, reporter: RuleReporter): void {
    const { kind } = packet.info;
    this.#slack = 0;
    this.timer.sentNew(position, timeNs);
    this.recovery.sentNew(position, idFollows, reporter);
    if (this.countsMessages) this.credits.check(packet, this.messages.total + 1, this.timer.isCapturedHere, reporter);
    if (this.nak !== undefined) {
      if (this.nak.position === position) this.nak = undefined;
      else this.nak.newRequests++;
    }
    let last = position;
    if (kind !== OP_SEND && kind !== OP_WRITE) last = this.#takeRead(packet, position, reporter);
    this.next = Math.max(position, last) + 1;
    if (this.order.take(packet, reporter)) {
      this.messages.add(this.next - 1);
      if (!packet.ackReq && (kind === OP_SEND || kind === OP_WRITE)) reporter.choose(39, UNASKED);
    }
    if (this.order.isBroken) this.refusals.misordered(position, reporter);
    if ((packet.info.headers & HDR_RETH) !== 0) this.refusals.begun(packet, position, reporter);
    const outstanding = this.next - this.acked - 1;
    if (this.acked >= 0) {
      reporter.measure('PSNs outstanding', outstanding);
      if (outstanding > PSN_HALF)
        reporter.violation(35, `${outstanding} PSNs are outstanding; expected at most 8388608`);
      else reporter.pass(35);
    }
  }

  #takeRead(packet: RocePacket, position: number, reporter: RuleReporter): number {
    const { kind, name } = packet.info;
    const bytes = kind === OP_READ_REQUEST ? packet.dmaLength : 0;
    const { mtu } = this.order;
    const least = packetsOf(bytes, mtu || MTU_MAX);
    this.#slack = mtu === 0 ? packetsOf(bytes, MTU_MIN) - least : 0;
    this.spans.add({
      first: position,
      last: this.#slack > 0 ? -1 : position + least - 1,
      nextAt: Number.POSITIVE_INFINITY,
      isRead: kind !== OP_ATOMIC,
      what: kind === OP_READ_REQUEST ? 'READ' : name.replace('_', ' '),
      packet: reporter.packet,
      vaHigh: packet.vaHigh,
      vaLow: packet.vaLow,
      rkey: packet.rkey,
      bytes,
      asks: [],
      isAnswered: false,
      hasResponse: false,
      exceededBy: 0,
    });
    if (this.readLimit > 0) {
      const { outstanding, oldestOutstanding } = this.spans;
      if (outstanding <= this.readLimit) reporter.pass(66);
      else if (oldestOutstanding!.exceededBy === 0) oldestOutstanding!.exceededBy = reporter.packet;
    }
    return position + least - 1;
  }

  #takeAgain(packet: RocePacket, position: number, timeNs: number, idFollows: boolean, reporter: RuleReporter): void {
    const noticedNs = this.holes.fill(position);
    const wasHole = noticedNs !== undefined; // this may be its first copy
    if (wasHole) reporter.measure('retransmission', timeNs - noticedNs);
    if (this.nak !== undefined && position <= this.nak.position) this.nak = undefined;
    this.refusals.sentAgain(position);
    const span = this.spans.find(position);
    this.timer.sentAgain(position, timeNs, { mayBeCaused: wasHole || this.spans.outstanding > 0, idFollows }, reporter);
    const { kind, place } = packet.info;
    const { isCapturedHere } = this.timer;
    this.recovery.sentAgain(position, timeNs, { wasHole, place, isCapturedHere, idFollows }, reporter);
    if (kind === OP_READ_REQUEST) {
      if (span?.isRead === true) this.#checkReadAgain(packet, position, span, reporter);
    } else if (span?.isRead === true && span.last > span.first && position > span.first) {
      reporter.violation(
        33,
        `${packet.info.name} has PSN ${hex(packet.psn)}, which belongs to the READ of packet ${span.packet}`,
        span.packet,
      );
    } else if (kind === OP_WRITE && place === PLACE_ONLY) {
      if (packet.payloadBytes === packet.dmaLength) reporter.pass(29);
      else reporter.violation(29, `a WRITE carries ${packet.payloadBytes} bytes; its RETH says ${packet.dmaLength}`);
    }
  }

  /** All of the READ from here on, or a part: a requester that has received what follows asks for less. */
  #checkReadAgain(packet: RocePacket, position: number, span: ReadSpan, reporter: RuleReporter): void {
    const { mtu } = this.order;
    this.spans.askAgain(span, { first: position, bytes: packet.dmaLength });
    if (mtu === 0 || span.last < 0) return;
    const advanced = (position - span.first) * mtu;
    const address = (high: number, low: number) => (BigInt(high) << 32n) | BigInt(low);
    const expected = address(span.vaHigh, span.vaLow) + BigInt(advanced);
    const seen = address(packet.vaHigh, packet.vaLow);
    const rest = span.bytes - advanced;
    if (position === span.first && packet.dmaLength < rest && !span.hasResponse) {
      this.countsMessages = false;
      if (span.first >= this.answersKnownFrom) {
        const choice =
          'a part is asked for again before any response has come: a responder may count each part as a message';
        reporter.choose(63, choice);
      }
    }
    const isPart = packet.dmaLength === rest || (packet.dmaLength < rest && packet.dmaLength % mtu === 0);
    if (seen === expected && isPart && packet.rkey === span.rkey) {
      reporter.pass(63);
      return;
    }
    const words = (va: bigint, bytes: number, key: number) =>
      `address 0x${va.toString(16)}, ${bytes} bytes, key 0x${key.toString(16)}`;
    reporter.violation(
      63,
      `a READ is asked for again from PSN ${hex(packet.psn)} with ${words(seen, packet.dmaLength, packet.rkey)}; expected ${words(expected, rest, span.rkey)}, or less`,
      span.packet,
    );
  }
}

/** Number of responses for this many bytes (IBTA vol. 1 §9.7.2). */
export function packetsOf(bytes: number, mtu: number): number {
  return Math.max(1, Math.ceil(bytes / mtu));
}

export function hex(psn: number): string {
  return psn.toString(16).padStart(6, '0');
}
