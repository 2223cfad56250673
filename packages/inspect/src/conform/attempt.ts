import { REJ_STALE_CONNECTION } from 'rocev2/internal/cm';
import { bigFromU64, NS_PER_MS, pause } from 'rocev2/internal/core';
import {
  HDR_AETH,
  OP_ACK,
  OP_ATOMIC_ACK,
  OP_CNP,
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
import type { Offer } from './offer.js';
import { TESTER_MEMORY } from './order.js';
import type { ConnectionTerms, Connector, PeerConnection } from './peer.js';
import { buildAnswer, buildRequest } from './request.js';
import { type Answer, type CaseTerms, type DueRequest, pattern, type Step } from './step.js';
import { answerText, nakName, requestText } from './step-text.js';
import type { Received, TestWire } from './wire.js';

export interface AttemptLimits {
  /** Path MTU of the connections, in bytes. */
  readonly mtu: number;
  readonly answerMs: number;
  readonly quietMs: number;
}

export class Broken extends Error {}
const DONE = Symbol('done');

export class Attempt {
  #connection: PeerConnection;
  readonly #firstOffer: Offer | undefined;
  readonly #wire: TestWire;
  readonly #connector: Connector;
  readonly #terms: ConnectionTerms;
  readonly #limits: AttemptLimits;
  #after = 'the connection was made';
  #requestNs: number;

  constructor(
    wire: TestWire,
    connector: Connector,
    terms: ConnectionTerms,
    { connection, limits }: { connection: PeerConnection; limits: AttemptLimits },
  ) {
    this.#wire = wire;
    this.#connector = connector;
    this.#terms = terms;
    this.#connection = connection;
    this.#firstOffer = connection.offer;
    this.#limits = limits;
    this.#requestNs = wire.clock.nowNs();
  }

  get caseTerms(): CaseTerms {
    const { mtu, depth, offer } = this.#connection;
    return { mtu, depth, offer };
  }

  close(): Promise<void> {
    return this.#connection.close();
  }

  async carryOut(steps: readonly Step[]): Promise<void> {
    for (const step of steps) if ((await this.#carryOut(step)) === DONE) return;
  }

  async #carryOut(step: Step): Promise<typeof DONE | undefined> {
    switch (step.do) {
      case 'send':
        this.#send(step);
        return undefined;
      case 'answer':
        this.#wire.send(buildAnswer(step.packet, this.#connection));
        this.#after = `the answer to PSN ${step.packet.at}`;
        return undefined;
      case 'expect':
        await this.#expect(step.answer);
        return undefined;
      case 'request':
        await this.#expectRequest(step.request);
        return undefined;
      case 'pause':
        await pause(this.#wire.clock, step.milliseconds * NS_PER_MS);
        return undefined;
      case 'silence':
        return this.#listen(undefined, step.milliseconds);
      case 'silence or':
        return this.#listen(step.answer);
      case 'reconnect':
        await this.#reconnect();
        return undefined;
      case 'repeat':
        await this.#repeat(step.message);
        return undefined;
      case 'request again':
        return this.#requestAgain();
    }
  }

  #send({ packet }: Step & { do: 'send' }): void {
    const { qpn, startPsn, offer } = this.#connection;
    this.#wire.send(buildRequest(packet, { qpn, startPsn, offer, firstOffer: this.#firstOffer }), packet);
    this.#after = `the packet with PSN ${packet.at}`;
  }

  async #reconnect(): Promise<void> {
    await this.close();
    const outcome = await this.#connector.connect(this.#terms);
    if (outcome.kind !== 'connected') throw new Broken('a second connection was not made');
    this.#connection = outcome.connection;
    this.#after = 'the second connection was made';
  }

  async #repeat(message: 'REQ' | 'DREQ'): Promise<void> {
    const retransmission = this.#connection.retransmission!;
    if (message === 'REQ') {
      const answer = await retransmission.repeatRequest();
      if (answer !== 'REP')
        throw new Broken(`after a repeated REQ ${answer ?? 'nothing'} came; expected the REP again`);
      return;
    }
    if (!(await retransmission.disconnect())) throw new Broken('a DREQ was not answered; expected DREP');
    if (!(await retransmission.disconnect())) throw new Broken('a repeated DREQ was not answered; expected DREP');
  }

  async #requestAgain(): Promise<typeof DONE | undefined> {
    const answer = await this.#connection.retransmission!.requestAgain();
    if (answer?.reason === REJ_STALE_CONNECTION) return DONE;
    if (answer?.name === 'REP') return undefined;
    const seen = answer === undefined ? 'nothing' : `${answer.name} with reason ${answer.reason}`;
    throw new Broken(`after a REQ for the same queue pair ${seen} came; expected REJ with reason 10, or REP`);
  }

  async #listen(allowed: Answer | undefined, milliseconds = this.#limits.quietMs): Promise<typeof DONE | undefined> {
    const received = await this.#next(milliseconds);
    if (received === undefined) return undefined;
    if (allowed !== undefined && this.#isAnswer(received, allowed)) return DONE;
    throw this.#broken(`${this.#describe(received.packet)} came`, 'nothing');
  }

  async #expectRequest(due: DueRequest): Promise<void> {
    const { answerMs } = this.#limits;
    const { notBeforeMs, notAfterMs } = due;
    const received = await this.#next(Math.max(answerMs, notAfterMs ?? 0));
    if (received === undefined) throw this.#broken('nothing came', requestText(due));
    const { packet, timeNs } = received;
    const afterMs = (timeNs - this.#requestNs) / NS_PER_MS;
    if (!this.#isRequest(packet, due)) throw this.#broken(`${this.#describe(packet)} came`, requestText(due));
    const isEarly = notBeforeMs !== undefined && afterMs < notBeforeMs;
    if (isEarly || (notAfterMs !== undefined && afterMs > notAfterMs)) {
      throw this.#broken(`${this.#describe(packet)} came after ${afterMs.toFixed(1)} ms`, requestText(due));
    }
    this.#requestNs = timeNs;
    this.#after = `the request with PSN ${due.at}`;
  }

  #isRequest(packet: RocePacket, { opcode, at, length, place = 0 }: DueRequest): boolean {
    if (packet.opcode !== opcode || psnDiff(packet.psn, this.#connection.peerStartPsn) !== at) return false;
    if (length === undefined) return true;
    const offset = bigFromU64(packet.vaHigh, packet.vaLow) - TESTER_MEMORY.address;
    return packet.dmaLength === length && offset === BigInt(place);
  }

  async #expect(answer: Answer): Promise<void> {
    if (answer.kind === 'read') return this.#expectData(answer);
    for (;;) {
      const received = await this.#next(this.#limits.answerMs);
      if (received === undefined) throw this.#broken('nothing came', answerText(answer));
      if (this.#isAnswer(received, answer)) return;
      if (this.#isEarlierAck(received, answer.at)) continue;
      throw this.#broken(`${this.#describe(received.packet)} came`, answerText(answer));
    }
  }

  async #expectData(answer: Answer & { kind: 'read' }): Promise<void> {
    const { at, bytes, seed, from, msn, isRest = false } = answer;
    const { mtu } = this.#connection;
    const packets = Math.max(1, Math.ceil(bytes / mtu));
    for (let index = 0; index < packets; ) {
      const received = await this.#next(this.#limits.answerMs);
      const expected = `${answerText(answer)}, packet ${index + 1} of ${packets}`;
      if (received === undefined) throw this.#broken('nothing came', expected);
      if (this.#isEarlierAck(received, at)) continue;
      const { packet, payload } = received;
      const isRight =
        packet.info.kind === OP_READ_RESPONSE &&
        (packet.info.place === segmentPositionOf(index, packets) ||
          (isRest && packet.info.place === restPositionOf(index, packets))) &&
        this.#at(packet) === at + index &&
        ((packet.info.headers & HDR_AETH) === 0 || syndromeKind(packet.syndrome) === SYNDROME_KIND_ACK) &&
        (msn === undefined || (packet.info.headers & HDR_AETH) === 0 || packet.msn === msn);
      if (!isRight) throw this.#broken(`${this.#describe(packet)} came`, expected);
      const due = pattern(Math.min(mtu, bytes - index * mtu), seed, from + index * mtu);
      if (payload.length !== due.length) throw this.#broken(`${payload.length} bytes of data came`, `${due.length}`);
      const wrong = payload.findIndex((byte, i) => byte !== due[i]);
      if (wrong >= 0) {
        throw this.#broken(
          `byte ${index * mtu + wrong} of the data was 0x${hex(payload[wrong])}`,
          `0x${hex(due[wrong])}`,
        );
      }
      index++;
    }
  }

  async #next(waitMs: number): Promise<Received | undefined> {
    const { clock } = this.#wire;
    const deadlineNs = clock.nowNs() + waitMs * NS_PER_MS;
    for (;;) {
      const received = await this.#connection.inbox.next(deadlineNs);
      if (received === undefined || received.packet.info.kind !== OP_CNP) return received;
    }
  }

  #at(packet: RocePacket): number {
    return psnDiff(packet.psn, this.#connection.startPsn);
  }

  #isAnswer({ packet }: Received, answer: Answer): boolean {
    if (this.#at(packet) !== answer.at) return false;
    const { kind } = packet.info;
    const syndrome = syndromeKind(packet.syndrome);
    switch (answer.kind) {
      case 'ack':
        return kind === OP_ACK && syndrome === SYNDROME_KIND_ACK && (answer.msn ?? packet.msn) === packet.msn;
      case 'nak':
        return kind === OP_ACK && syndrome === SYNDROME_KIND_NAK && answer.codes.includes(packet.syndrome);
      case 'rnr':
        return kind === OP_ACK && syndrome === SYNDROME_KIND_RNR && (packet.syndrome & 0x1f) === answer.timer;
      case 'atomic':
        return (
          kind === OP_ATOMIC_ACK &&
          bigFromU64(packet.origHigh, packet.origLow) === answer.value &&
          (answer.msn ?? packet.msn) === packet.msn
        );
      case 'read':
        return kind === OP_READ_RESPONSE;
    }
  }

  /** An answer may be preceded by acknowledgements of earlier requests. */
  #isEarlierAck({ packet }: Received, at: number): boolean {
    return packet.info.kind === OP_ACK && syndromeKind(packet.syndrome) === SYNDROME_KIND_ACK && this.#at(packet) < at;
  }

  #broken(seen: string, expected: string): Broken {
    return new Broken(`after ${this.#after}, ${seen}; expected ${expected}`);
  }

  #describe(packet: RocePacket): string {
    const { info, syndrome, msn } = packet;
    const at = this.#at(packet);
    if (info.kind === OP_ATOMIC_ACK) {
      return `atomic result ${bigFromU64(packet.origHigh, packet.origLow)} at PSN ${at}, MSN ${msn}`;
    }
    if (info.kind === OP_READ_RESPONSE) return `${info.name} with PSN ${at}`;
    if (info.kind !== OP_ACK) return `${info.name} with PSN ${psnDiff(packet.psn, this.#connection.peerStartPsn)}`;
    switch (syndromeKind(syndrome)) {
      case SYNDROME_KIND_ACK:
        return `ACK of PSN ${at}, MSN ${msn}`;
      case SYNDROME_KIND_RNR:
        return `RNR NAK with timer ${syndrome & 0x1f} at PSN ${at}`;
      default:
        return `${nakName(syndrome)} at PSN ${at}`;
    }
  }
}

function segmentPositionOf(index: number, packets: number): number {
  if (packets === 1) return PLACE_ONLY;
  if (index === 0) return PLACE_FIRST;
  return index === packets - 1 ? PLACE_LAST : PLACE_MIDDLE;
}

/** The answer to the rest of a READ, of a responder that continues its first answer. */
function restPositionOf(index: number, packets: number): number {
  return index === packets - 1 ? PLACE_LAST : PLACE_MIDDLE;
}

function hex(byte: number): string {
  return byte.toString(16).padStart(2, '0');
}
