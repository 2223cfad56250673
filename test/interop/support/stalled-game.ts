/**
 * Who has to move in a game of ibv_rc_pingpong that has stopped, told from what has passed the guest's wire.
 *
 * The requester of Soft-RoCE can stand still for ever (docs/how-to/talk-to-linux.md), and a game that ends by that may be played again. A fault of ours must not: a message that we do not
 * send, a packet that we do not answer, one of ours that the guest throws away. So whoever owes an answer is looked for first, then whose turn it is; whatever is in doubt counts
 * as ours. A wire shows no programs: a guest whose program sleeps looks like one whose NIC does. Neither is ours.
 */

import { OP_ACK, OP_CNP, OP_SEND, OPCODES, PLACE_LAST, PLACE_ONLY } from '../../../src/packet/opcode.js';
import { psnAdd, psnDiff } from '../../../src/packet/psn.js';
import type { CapturedPacket } from '../../../src/port/capture/captured-packet.js';
import { type DecodedAeth, type DecodedPacket, decodeRoce } from '../../../src/port/capture/decoded-packet.js';
import { udpOf } from '../../../src/port/capture/udp-in-capture.js';

/** What the verdict begins with if nothing in the game was left to us, and only then. */
export const STANDS_STILL =
  "Soft-RoCE stands still: all that either end has sent is acknowledged, and it is the guest's turn";

/** A guest that has sent a message or a part of one within this time is slow, and does not stand still. */
const STILL_NS = 20e9;

/** One end of the game, as both ends have told each other before it. */
export interface Player {
  /** IP address. */
  readonly address: string;
  /** Its queue pair. */
  readonly qpn: number;
  /** Of its first request packet. */
  readonly startPsn: number;
}

export interface Game {
  readonly ours: Player;
  readonly guest: Player;
  /** The client sends the first message; after that both ends take turns. */
  readonly client: 'ours' | 'guest';
  /** That each end has to send. */
  readonly messages: number;
}

/** A game on the wire: takes the packets of a capture in their order, its own and others, and judges. */
export class StalledGame {
  readonly #game: Game;
  readonly #ours: End;
  readonly #guest: End;
  #number = 0;
  /** The first thing that no game has. */
  #strange: string | undefined;

  constructor(game: Game) {
    this.#game = game;
    this.#ours = new End('ours', game.ours);
    this.#guest = new End('the guest', game.guest);
  }

  take(captured: CapturedPacket): void {
    this.#number++;
    const datagram = udpOf(captured);
    if (datagram === undefined) return;
    const packet = decodeRoce(datagram, { number: this.#number, timeNs: 0, interfaceId: 0 }, true);
    const sender = this.#senderOf(packet);
    if (sender === undefined) return;
    // Who it is for throws it away.
    if (packet.icrc !== 'ok') {
      sender.damaged++;
      return;
    }
    const strange = this.#taken(packet, sender, captured.timestampNs);
    this.#strange ??= strange;
  }

  /** In words, with what either end has sent, for who reads nothing else: begins with {@link STANDS_STILL} or with what was left to somebody. `nowNs`: since 1970. */
  verdict(nowNs: bigint): string {
    return [this.#finding(nowNs), this.#ours.summary(nowNs), this.#guest.summary(nowNs)].join('\n');
  }

  #senderOf({ source, destination, bth }: DecodedPacket): End | undefined {
    const { ours, guest } = this.#game;
    const isBetween = (from: Player, to: Player) =>
      source === from.address && destination === to.address && bth?.destQpn === to.qpn;
    if (isBetween(ours, guest)) return this.#ours;
    return isBetween(guest, ours) ? this.#guest : undefined;
  }

  /** What is strange about the packet, if anything is. */
  #taken(packet: DecodedPacket, sender: End, timestampNs: bigint): string | undefined {
    const bth = packet.bth!;
    const { kind, place } = OPCODES[bth.opcode]!;
    sender.last = { what: `${bth.operation} PSN ${hex(bth.psn)}, packet ${packet.number}`, timestampNs };
    if (kind === OP_CNP) return undefined;
    if (kind === OP_ACK) {
      sender.answers++;
      return (sender === this.#ours ? this.#guest : this.#ours).answered(bth.psn, packet.aeth!);
    }
    if (kind !== OP_SEND) return `${sender.name} has sent ${bth.operation}, which is no part of the game`;
    return sender.requested(bth, place === PLACE_LAST || place === PLACE_ONLY, timestampNs);
  }

  #finding(nowNs: bigint): string {
    const [ours, guest] = [this.#ours, this.#guest];
    if (this.#strange !== undefined) return `the game cannot be judged: ${this.#strange}`;
    const debts = [
      ...(guest.unanswered === undefined ? [] : [`ours has not answered PSN ${guest.unanswered} of the guest`]),
      ...(ours.unanswered === undefined ? [] : [`the guest has not answered PSN ${ours.unanswered} of ours`]),
    ];
    if (debts.length > 0) return debts.join(', and ');
    for (const end of [ours, guest]) {
      if (end.refused !== undefined) return `${end.name} has not sent PSN ${end.refused} again`;
      if (end.missing > 0) return `the game cannot be judged: ${end.missing} packets of ${end.name} never passed`;
    }
    const { client, messages } = this.#game;
    if (ours.messages >= messages && guest.messages >= messages) return 'the game is over: nobody has to move';
    const ahead = client === 'ours' ? ours.messages - guest.messages : guest.messages - ours.messages;
    if (ahead !== 0 && ahead !== 1) return 'the game cannot be judged: the ends have not taken turns';
    const isOurTurn = (client === 'ours') === (ahead === 0);
    if (isOurTurn || ours.isInMessage) return `it is our turn, ${ours.isInMessage ? 'in a message' : 'with a message'}`;
    if (nowNs - guest.lastRequestNs < STILL_NS) return 'the guest does not stand still: it has just been sending';
    return `${STANDS_STILL}, ${guest.isInMessage ? 'in a message' : 'with a message'}`;
  }
}

/** One end: its request packets, and what the other end has said to them. */
class End {
  readonly name: string;
  /** Complete ones. */
  messages = 0;
  /** Packets with a wrong ICRC. */
  damaged = 0;
  /** Acknowledgements of either kind that it has sent. */
  answers = 0;
  last: { readonly what: string; readonly timestampNs: bigint } | undefined;
  lastRequestNs = 0n;
  readonly #startPsn: number;
  // PSNs as distances from the first one: a game is shorter than half of their range.
  readonly #sent = new Set<number>();
  #newest = -1;
  #newestEndsMessage = true;
  #repeated = 0;
  #acknowledged = -1;
  #unanswered = -1;
  #refused: { readonly place: number; readonly meaning: string } | undefined;

  constructor(name: string, { startPsn }: Player) {
    this.name = name;
    this.#startPsn = startPsn;
  }

  /** The newest PSN that wants an acknowledgement and has none since: a packet that is sent again wants another one. */
  get unanswered(): string | undefined {
    return this.#unanswered < 0 ? undefined : this.#psn(this.#unanswered);
  }

  /** The PSN that the other end has refused and that was not sent again since; with the refusal. */
  get refused(): string | undefined {
    return this.#refused && `${this.#psn(this.#refused.place)} (${this.#refused.meaning})`;
  }

  /** Packets before the newest one that never passed. */
  get missing(): number {
    return this.#newest + 1 - this.#sent.size;
  }

  /** The newest packet is not the last one of its message. */
  get isInMessage(): boolean {
    return !this.#newestEndsMessage;
  }

  /** A request packet of this end has passed. */
  requested({ psn, ackReq }: { psn: number; ackReq: boolean }, endsMessage: boolean, ns: bigint): string | undefined {
    const place = psnDiff(psn, this.#startPsn);
    if (place < 0) return `${this.name} has sent PSN ${hex(psn)}, which is before its first one`;
    this.lastRequestNs = ns;
    if (this.#sent.has(place)) this.#repeated++;
    else if (endsMessage) this.messages++;
    this.#sent.add(place);
    if (place > this.#newest) {
      this.#newest = place;
      this.#newestEndsMessage = endsMessage;
    }
    // An acknowledgement covers all that came before: packets that do not ask for one wait for the next that does.
    if (ackReq || endsMessage) this.#unanswered = Math.max(this.#unanswered, place);
    if (this.#refused !== undefined && place <= this.#refused.place) this.#refused = undefined;
    return undefined;
  }

  /** The other end has answered a request packet of this one. */
  answered(psn: number, { kind, meaning }: DecodedAeth): string | undefined {
    const place = psnDiff(psn, this.#startPsn);
    const acknowledged = kind === 'ack' ? place : place - 1;
    // A capture can lack packets: who acknowledges has seen them.
    if (acknowledged > this.#newest) return `PSN ${hex(psn)} of ${this.name} was answered, and never passed`;
    this.#acknowledged = Math.max(this.#acknowledged, acknowledged);
    if (kind !== 'ack') this.#refused = { place, meaning };
    else if (this.#refused !== undefined && place >= this.#refused.place) this.#refused = undefined;
    if (kind !== 'ack' || place >= this.#unanswered) this.#unanswered = -1;
    return undefined;
  }

  summary(nowNs: bigint): string {
    const parts = [
      `${this.messages} messages in ${this.#sent.size} packets (${this.#repeated} sent again, ${this.damaged} damaged)`,
      `acknowledged ${this.#acknowledged < 0 ? 'none' : `to PSN ${this.#psn(this.#acknowledged)}`}`,
      `${this.answers} answers`,
      this.last
        ? `the last packet ${secondsBetween(this.last.timestampNs, nowNs)} s ago (${this.last.what})`
        : 'no packet',
    ];
    return `${this.name}: ${parts.join(', ')}`;
  }

  #psn(place: number): string {
    return hex(psnAdd(this.#startPsn, place));
  }
}

function hex(psn: number): string {
  return psn.toString(16).padStart(6, '0');
}

function secondsBetween(earlierNs: bigint, laterNs: bigint): string {
  return (Number(laterNs - earlierNs) / 1e9).toFixed(3);
}
