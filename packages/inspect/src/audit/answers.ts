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
import type { Judge } from './judge.js';
import { isPathMtu } from './message-order.js';
import type { ReadSpan } from './read-spans.js';
import { hex, MISORDER_NS, packetsOf, type Requests } from './requests.js';

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

  take(packet: RocePacket, requests: Requests, timeNs: number, judge: Judge): void {
    const { kind, transport } = packet.info;
    if (transport === 'VENDOR') {
      requests.timer.asked();
      return;
    }
    if (requests.answersKnownFrom > requests.next) requests.answersKnownFrom = requests.next;
    const position = requests.position(packet.psn);
    if (this.#fatal !== undefined) this.#judgeAfterFatal(packet, position, timeNs, judge);
    if (kind === OP_READ_RESPONSE) this.#takeResponse(packet, requests, position, timeNs, judge);
    else if (kind === OP_ATOMIC_ACK) this.#takeAtomic(requests, position, timeNs, judge);
    else this.#takeAck(packet, requests, position, timeNs, judge);
  }

  #takeAck(packet: RocePacket, requests: Requests, position: number, timeNs: number, judge: Judge): void {
    const { syndrome, msn } = packet;
    const kind = syndromeKind(syndrome);
    const isAck = kind === SYNDROME_KIND_ACK;
    if (requests.isUnsent(position)) {
      requests.ghost ??= { position, packet: judge.packet, timeNs };
      return;
    }
    const acknowledges = isAck ? position : position - 1;
    requests.refusals.answered(syndrome, position, acknowledges, judge);
    this.#judgeDirection(packet, requests, acknowledges, judge);
    if (acknowledges >= requests.acked) this.#judgeMsn(msn, requests, acknowledges, judge);
    if (kind === SYNDROME_KIND_NAK && syndrome === NAK_PSN_SEQUENCE)
      this.#takeSequenceNak(requests, position, timeNs, judge);
    else if (kind === SYNDROME_KIND_RNR) {
      requests.timer.notReady(position, syndrome & 0x1f, timeNs, judge.packet);
      requests.recovery.notReady(position);
    } else if (kind === SYNDROME_KIND_NAK) {
      this.#fatal = { position, psn: packet.psn, packet: judge.packet, syndrome, timeNs };
      if (requests.spans.newest !== undefined && !requests.spans.isOwedBefore(position)) judge.pass(81);
    }
    if (isAck) requests.spans.answered(position);
    if (isAck) this.#takeCredit(packet, requests, acknowledges, judge);
    this.#progress(requests, acknowledges, timeNs);
    if (!isAck) requests.timer.asked();
  }

  #judgeDirection(packet: RocePacket, requests: Requests, acknowledges: number, judge: Judge): void {
    const { msn } = packet;
    if (this.#newestMsn >= 0 && acknowledges < this.#newestPosition) {
      // An older MSN belongs to an answer that was overtaken.
      if (psnDiff(msn, this.#newestMsn) > 0) {
        judge.violation(
          36,
          `acknowledges up to PSN ${hex(requests.psn(acknowledges))} with MSN ${msn}, after packet ${this.#newestPacket} has acknowledged up to PSN ${hex(requests.psn(this.#newestPosition))} with MSN ${this.#newestMsn}`,
          this.#newestPacket,
        );
      }
      return;
    }
    judge.pass(36);
    if (this.#newestMsn >= 0 && acknowledges === this.#newestPosition && psnDiff(msn, this.#newestMsn) <= 0) return;
    this.#newestMsn = msn;
    this.#newestPosition = acknowledges;
    this.#newestPacket = judge.packet;
  }

  #judgeMsn(msn: number, requests: Requests, acknowledges: number, judge: Judge): void {
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
      judge.pass(40);
      return;
    }
    const expected = completed === total ? `${least}` : `${least} to ${(requests.msnBase + total) & 0xffffff}`;
    judge.violation(
      40,
      `the MSN is ${msn}; the messages up to PSN ${hex(requests.psn(acknowledges))} make it ${expected}`,
    );
    requests.msnBase = -1;
  }

  #takeSequenceNak(requests: Requests, position: number, timeNs: number, judge: Judge): void {
    requests.recovery.nak(position, timeNs, judge);
    const noticedNs = requests.holes.noticedNs(position);
    if (noticedNs !== undefined && requests.nak?.position !== position)
      judge.measure('NAK generation', timeNs - noticedNs);
    const open = requests.nak;
    if (open?.position === position) {
      const psn = hex(requests.psn(position));
      if (open.newRequests > 0) {
        judge.violation(
          45,
          `a second NAK for PSN ${psn}, which has not been sent again since the NAK of packet ${open.packet}`,
          open.packet,
        );
      } else
        judge.cannotTell(
          45,
          `a second NAK for PSN ${psn} right behind that of packet ${open.packet}: perhaps a copy that the network made`,
          open.packet,
        );
      return;
    }
    judge.pass(45);
    requests.nak = { position, packet: judge.packet, newRequests: 0 };
  }

  #takeResponse(packet: RocePacket, requests: Requests, position: number, timeNs: number, judge: Judge): void {
    const { info, payloadBytes } = packet;
    const { place } = info;
    if ((place === PLACE_FIRST || place === PLACE_MIDDLE) && isPathMtu(payloadBytes)) requests.learnMtu(payloadBytes);
    const span = requests.spans.find(position);
    if (span === undefined || !span.isRead) {
      this.#judgeStranger(packet, requests, position, judge);
      return;
    }
    span.hasResponse = true;
    if (span.exceededBy > 0) {
      judge.violation(
        66,
        `the READ of packet ${span.packet} is answered after the READ or atomic of packet ${span.exceededBy}: more than ${requests.readLimit} were outstanding`,
        span.packet,
        span.exceededBy,
      );
      span.exceededBy = 0;
    }
    if (span.last >= 0 && requests.order.mtu > 0) this.#judgePlace(packet, requests, span, position, judge);
    if (position === span.last) requests.spans.answered(position);
    this.#progress(requests, position, timeNs);
  }

  #judgeStranger(packet: RocePacket, requests: Requests, position: number, judge: Judge): void {
    const isKnown =
      position < requests.next && position >= requests.wholeFrom && position >= requests.spans.completeFrom;
    const words = `${packet.info.name} with PSN ${hex(packet.psn)}`;
    if (isKnown) judge.violation(61, `${words}, which no READ has asked for`);
    else judge.cannotTell(61, `${words}: its request was not captured`);
  }

  #judgePlace(
    { info, payloadBytes, psn }: RocePacket,
    requests: Requests,
    span: ReadSpan,
    position: number,
    judge: Judge,
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
      judge.choose(
        64,
        begins ? 'answers to a part begin with FIRST or ONLY' : 'answers to a part begin with MIDDLE or LAST',
      );
    }
    const index = position - span.first;
    const count = span.last - span.first + 1;
    if (fits.length > 0) judge.pass(61);
    else {
      const text = `${info.name} is response ${index + 1} of ${count} to the READ of packet ${span.packet}`;
      judge.violation(61, text, span.packet);
      return;
    }
    // A requester that asks again for something else breaks rule 63; the responder may answer either request.
    const expected = fits.map(({ first, last, bytes }) => (position === last ? bytes - (position - first) * mtu : mtu));
    if (expected.includes(payloadBytes)) judge.pass(62);
    else {
      const text = `the response with PSN ${hex(psn)} carries ${payloadBytes} bytes; the READ of packet ${span.packet} expects ${expected[0]}`;
      judge.violation(62, text, span.packet);
    }
  }

  #takeAtomic(requests: Requests, position: number, timeNs: number, judge: Judge): void {
    const span = requests.spans.find(position);
    if (span === undefined || span.isRead) return;
    if (span.exceededBy > 0) {
      judge.cannotTell(
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
  #takeCredit({ syndrome, msn }: RocePacket, requests: Requests, acknowledges: number, judge: Judge): void {
    if (acknowledges > requests.acked) judge.measure('PSNs per acknowledgement', acknowledges - requests.acked);
    if (!requests.countsMessages || requests.msnBase < 0) return;
    const { total } = requests.messages;
    requests.credits.granted(syndrome, total + psnDiff(msn, (requests.msnBase + total) & 0xffffff));
  }

  #judgeAfterFatal(packet: RocePacket, position: number, timeNs: number, judge: Judge): void {
    const fatal = this.#fatal!;
    if (position < fatal.position) {
      if (packet.info.kind !== OP_READ_RESPONSE && packet.info.kind !== OP_ATOMIC_ACK) return;
      const text = `${packet.info.name} with PSN ${hex(packet.psn)} behind the fatal NAK of packet ${fatal.packet}, which acknowledges it`;
      if (this.isCapturedHere && timeNs - fatal.timeNs > MISORDER_NS) judge.violation(81, text, fatal.packet);
      else judge.cannotTell(81, `${text}; they may have changed places on the way`, fatal.packet);
      return;
    }
    const isCopy = packet.psn === fatal.psn && packet.syndrome === fatal.syndrome;
    const text = `${packet.info.name} with PSN ${hex(packet.psn)} after the fatal NAK of packet ${fatal.packet}`;
    if (isCopy) judge.cannotTell(80, `${text}: perhaps a copy that the network made`, fatal.packet);
    else judge.violation(80, `${text}; expected silence`, fatal.packet);
  }

  #progress(requests: Requests, position: number, timeNs: number): void {
    if (position <= requests.acked) return;
    requests.acked = position;
    requests.recovery.acknowledged(position);
    requests.timer.progress(position, timeNs);
  }
}
