/** The answers of one direction, checked against the requests of the other (rules 36, 40, 45, 58, 61, 62, 66, 80). */

import {
  NAK_PSN_SEQUENCE,
  OP_ATOMIC_ACK,
  OP_READ_RESPONSE,
  PLACE_FIRST,
  PLACE_LAST,
  PLACE_MIDDLE,
  PLACE_ONLY,
  psnDiff,
  type RocePacket,
  SYNDROME_KIND_ACK,
  SYNDROME_KIND_NAK,
  SYNDROME_KIND_RNR,
  syndromeKind,
} from 'rocev2/internal/packet';
import { isPathMtu } from './message-order.js';
import type { ReadSpan } from './read-spans.js';
import { hex, MISORDER_NS, packetsOf, type Requests } from './requests.js';
import type { RuleReporter } from './rule-reporter.js';

export class Answers {
  /** The capture was made at the responder: what it shows left in this order. */
  isCapturedHere = false;
  /**
   * MSN and number of the ACK or NAK that acknowledged most, and the position; -1: none yet. Responses are left out:
   * they overtake ACKs.
   */
  #newestMsn = -1;
  #newestPosition = -1;
  #newestPacket = 0;
  #fatal:
    | {
        readonly position: number;
        readonly psn: number;
        readonly packet: number;
        readonly syndrome: number;
        readonly timeNs: number;
      }
    | undefined;

  take(packet: RocePacket, requests: Requests, timeNs: number, reporter: RuleReporter): void {
    const { kind, transport } = packet.info;
    if (transport === 'VENDOR') {
      requests.timer.asked();
      return;
    }
    if (requests.answersKnownFrom > requests.next) requests.answersKnownFrom = requests.next;
    const position = requests.position(packet.psn);
    if (this.#fatal !== undefined) this.#checkAfterFatal(packet, position, timeNs, reporter);
    if (kind === OP_READ_RESPONSE) this.#takeResponse(packet, requests, position, timeNs, reporter);
    else if (kind === OP_ATOMIC_ACK) this.#takeAtomic(requests, position, timeNs, reporter);
    else this.#takeAck(packet, requests, position, timeNs, reporter);
  }

  #takeAck(packet: RocePacket, requests: Requests, position: number, timeNs: number, reporter: RuleReporter): void {
    const { syndrome, msn } = packet;
    const kind = syndromeKind(syndrome);
    const isAck = kind === SYNDROME_KIND_ACK;
    if (requests.isUnsent(position)) {
      requests.ghost ??= { position, packet: reporter.packet, timeNs };
      return;
    }
    const acknowledges = isAck ? position : position - 1;
    requests.refusals.answered(syndrome, position, acknowledges, reporter);
    this.#checkDirection(packet, requests, acknowledges, reporter);
    if (acknowledges >= requests.acked) this.#checkMsn(msn, requests, acknowledges, reporter);
    if (kind === SYNDROME_KIND_NAK && syndrome === NAK_PSN_SEQUENCE)
      this.#takeSequenceNak(requests, position, timeNs, reporter);
    else if (kind === SYNDROME_KIND_RNR) {
      requests.timer.notReady(position, syndrome & 0x1f, timeNs, reporter.packet);
      requests.recovery.notReady(position);
    } else if (kind === SYNDROME_KIND_NAK) {
      this.#fatal = { position, psn: packet.psn, packet: reporter.packet, syndrome, timeNs };
      if (requests.spans.newest !== undefined && !requests.spans.isOwedBefore(position)) reporter.pass(81);
    }
    if (isAck) requests.spans.answered(position);
    if (isAck) this.#takeCredit(packet, requests, acknowledges, reporter);
    this.#progress(requests, acknowledges, timeNs);
    if (!isAck) requests.timer.asked();
  }

  #checkDirection(packet: RocePacket, requests: Requests, acknowledges: number, reporter: RuleReporter): void {
    const { msn } = packet;
    if (this.#newestMsn >= 0 && acknowledges < this.#newestPosition) {
      // An older MSN belongs to an answer that was overtaken.
      if (psnDiff(msn, this.#newestMsn) > 0) {
        reporter.violation(
          36,
          `acknowledges up to PSN ${hex(requests.psn(acknowledges))} with MSN ${msn}, after packet ${this.#newestPacket} has acknowledged up to PSN ${hex(requests.psn(this.#newestPosition))} with MSN ${this.#newestMsn}`,
          this.#newestPacket,
        );
      }
      return;
    }
    reporter.pass(36);
    if (this.#newestMsn >= 0 && acknowledges === this.#newestPosition && psnDiff(msn, this.#newestMsn) <= 0) return;
    this.#newestMsn = msn;
    this.#newestPosition = acknowledges;
    this.#newestPacket = reporter.packet;
  }

  #checkMsn(msn: number, requests: Requests, acknowledges: number, reporter: RuleReporter): void {
    const completed = requests.messages.upTo(acknowledges);
    const { total } = requests.messages;
    if (completed === undefined || !requests.countsMessages) return;
    if (requests.msnBase < 0) {
      if (completed === total) requests.msnBase = (msn - total) & 0xffffff;
      return;
    }
    const least = (requests.msnBase + completed) & 0xffffff;
    const above = psnDiff(msn, least);
    if (above >= 0 && above <= total - completed) {
      reporter.pass(40);
      return;
    }
    const expected = completed === total ? `${least}` : `${least} to ${(requests.msnBase + total) & 0xffffff}`;
    reporter.violation(
      40,
      `the MSN is ${msn}; the messages up to PSN ${hex(requests.psn(acknowledges))} make it ${expected}`,
    );
    requests.msnBase = -1;
  }

  #takeSequenceNak(requests: Requests, position: number, timeNs: number, reporter: RuleReporter): void {
    requests.recovery.nak(position, timeNs, reporter);
    const noticedNs = requests.holes.noticedNs(position);
    if (noticedNs !== undefined && requests.nak?.position !== position)
      reporter.measure('NAK generation', timeNs - noticedNs);
    const open = requests.nak;
    if (open?.position === position) {
      const psn = hex(requests.psn(position));
      if (open.newRequests > 0) {
        reporter.violation(
          45,
          `a second NAK for PSN ${psn}, which has not been sent again since the NAK of packet ${open.packet}`,
          open.packet,
        );
      } else
        reporter.cannotTell(
          45,
          `a second NAK for PSN ${psn} directly after that of packet ${open.packet}: perhaps a copy that the network made`,
          open.packet,
        );
      return;
    }
    reporter.pass(45);
    requests.nak = { position, packet: reporter.packet, newRequests: 0 };
  }

  #takeResponse(
    packet: RocePacket,
    requests: Requests,
    position: number,
    timeNs: number,
    reporter: RuleReporter,
  ): void {
    const { info, payloadBytes } = packet;
    const { place } = info;
    if ((place === PLACE_FIRST || place === PLACE_MIDDLE) && isPathMtu(payloadBytes)) requests.learnMtu(payloadBytes);
    const span = requests.spans.find(position);
    if (span === undefined || !span.isRead) {
      this.#checkUnknownFlow(packet, requests, position, reporter);
      return;
    }
    span.hasResponse = true;
    if (span.exceededBy > 0) {
      reporter.violation(
        66,
        `the ${span.what} of packet ${span.packet} is answered after the READ or atomic of packet ${span.exceededBy}: more than ${requests.readLimit} were outstanding`,
        span.packet,
        span.exceededBy,
      );
      span.exceededBy = 0;
    }
    if (span.last >= 0 && requests.order.mtu > 0) this.#checkPlace(packet, requests, span, position, reporter);
    if (position === span.last) requests.spans.answered(position);
    this.#progress(requests, position, timeNs);
  }

  #checkUnknownFlow(packet: RocePacket, requests: Requests, position: number, reporter: RuleReporter): void {
    const isKnown =
      position < requests.next && position >= requests.wholeFrom && position >= requests.spans.completeFrom;
    const words = `${packet.info.name} with PSN ${hex(packet.psn)}`;
    if (isKnown) reporter.violation(61, `${words}, which no READ has asked for`);
    else reporter.cannotTell(61, `${words}: its request was not captured`);
  }

  #checkPlace(
    { info, payloadBytes, psn }: RocePacket,
    requests: Requests,
    span: ReadSpan,
    position: number,
    reporter: RuleReporter,
  ): void {
    const { mtu } = requests.order;
    const asks = [span, ...span.asks]
      .map(({ first, bytes }) => ({ first, bytes, last: first + packetsOf(bytes, mtu) - 1 }))
      .filter(({ first, last }) => position >= first && position <= last);
    // A responder may end an answer where a newer request asks for the rest.
    const isCutShort = span.asks.some(({ first }) => first === position + 1);
    const isRestart = position !== span.first || (position === 0 && !requests.isFromStart);
    const fits = asks.filter(({ first, last }) => {
      const isLast = position === last;
      const begins = position === first;
      if (info.place === PLACE_ONLY) return (isLast || isCutShort) && begins;
      if (info.place === PLACE_FIRST) return !isLast && begins;
      if (info.place === PLACE_MIDDLE) return !isLast && isRestart;
      return info.place === PLACE_LAST && (isLast || isCutShort) && isRestart;
    });
    if (span.asks.some(({ first }) => first === position)) {
      const begins = info.place === PLACE_ONLY || info.place === PLACE_FIRST;
      reporter.choose(
        64,
        begins ? 'answers to a part begin with FIRST or ONLY' : 'answers to a part begin with MIDDLE or LAST',
      );
    }
    const index = position - span.first;
    const count = span.last - span.first + 1;
    if (fits.length > 0) reporter.pass(61);
    else {
      const text = `${info.name} is response ${index + 1} of ${count} to the ${span.what} of packet ${span.packet}`;
      reporter.violation(61, text, span.packet);
      return;
    }
    // A requester that asks again for something else breaks rule 63; the responder may answer either request.
    const expected = fits.map(({ first, last, bytes }) => (position === last ? bytes - (position - first) * mtu : mtu));
    if (expected.includes(payloadBytes)) reporter.pass(62);
    else {
      const text = `the response with PSN ${hex(psn)} carries ${payloadBytes} bytes; the ${span.what} of packet ${span.packet} expects ${expected[0]}`;
      reporter.violation(62, text, span.packet);
    }
  }

  #takeAtomic(requests: Requests, position: number, timeNs: number, reporter: RuleReporter): void {
    const span = requests.spans.find(position);
    if (span === undefined || span.isRead) return;
    if (span.exceededBy > 0) {
      reporter.cannotTell(
        66,
        `the atomic of packet ${span.packet} is answered after the request of packet ${span.exceededBy}`,
        span.packet,
      );
      span.exceededBy = 0;
    }
    requests.spans.answered(position);
    this.#progress(requests, position, timeNs);
  }

  /** The number of messages that the responder has room for (IBTA vol. 1 §9.7.7.2). */
  #takeCredit({ syndrome, msn }: RocePacket, requests: Requests, acknowledges: number, reporter: RuleReporter): void {
    if (acknowledges > requests.acked) reporter.measure('PSNs per acknowledgement', acknowledges - requests.acked);
    if (!requests.countsMessages || requests.msnBase < 0) return;
    const { total } = requests.messages;
    requests.credits.granted(syndrome, total + psnDiff(msn, (requests.msnBase + total) & 0xffffff));
  }

  #checkAfterFatal(packet: RocePacket, position: number, timeNs: number, reporter: RuleReporter): void {
    const fatal = this.#fatal!;
    if (position < fatal.position) {
      if (packet.info.kind !== OP_READ_RESPONSE && packet.info.kind !== OP_ATOMIC_ACK) return;
      const text = `${packet.info.name} with PSN ${hex(packet.psn)} behind the fatal NAK of packet ${fatal.packet}, which acknowledges it`;
      if (this.isCapturedHere && timeNs - fatal.timeNs > MISORDER_NS) reporter.violation(81, text, fatal.packet);
      else reporter.cannotTell(81, `${text}; they may have changed places on the way`, fatal.packet);
      return;
    }
    const isCopy = packet.psn === fatal.psn && packet.syndrome === fatal.syndrome;
    const text = `${packet.info.name} with PSN ${hex(packet.psn)} after the fatal NAK of packet ${fatal.packet}`;
    if (isCopy) reporter.cannotTell(80, `${text}: perhaps a copy that the network made`, fatal.packet);
    else reporter.violation(80, `${text}; expected silence`, fatal.packet);
  }

  #progress(requests: Requests, position: number, timeNs: number): void {
    if (position <= requests.acked) return;
    requests.acked = position;
    requests.recovery.acknowledged(position);
    requests.timer.progress(position, timeNs);
  }
}
