/** Carries out the steps of one case on a connection of its own, and says what came back that should not, or did not come. */

import { bigFromU64 } from '../core/u64.js';
import { NS_PER_MS } from '../core/units.js';
import { SYNDROME_KIND_ACK, SYNDROME_KIND_NAK, SYNDROME_KIND_RNR, syndromeKind } from '../packet/aeth.js';
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
} from '../packet/opcode.js';
import { psnDiff } from '../packet/psn.js';
import type { RocePacket } from '../packet/roce.js';
import { parseOffer } from './offer.js';
import { type ConnectionTerms, type ConnectOutcome, type Management, PeerConnection } from './peer-connection.js';
import { buildRequest } from './request.js';
import { type Answer, answerText, type CaseTerms, nakName, pattern, type Step, type TestCase } from './step.js';
import type { Received } from './wire.js';

/** How one attempt of a case ended. */
export type AttemptOutcome =
  | { readonly kind: 'kept' }
  /** `text`: what was seen, and what was expected. */
  | { readonly kind: 'broken'; readonly text: string }
  /** No connection: the case says nothing. */
  | { readonly kind: 'unconnected'; readonly text: string }
  /** The target does not have what the case needs. */
  | { readonly kind: 'lacking'; readonly text: string };

/** What a run is bounded by. */
export interface AttemptLimits {
  /** How long an answer may take. */
  readonly answerMs: number;
  /** How long nothing may come where nothing has to. */
  readonly quietMs: number;
}

/** Where to connect to. */
export interface Destination {
  /** rdma_cm port. */
  readonly port: number;
  /** A port on which nobody listens. */
  readonly idlePort: number;
  /** Path MTU in bytes. */
  readonly mtu: number;
}

const KEPT: AttemptOutcome = { kind: 'kept' };

/** A step that went wrong ends the attempt. */
class Broken extends Error {}
/** The step decided the case early, in the target's favour. */
const DONE = Symbol('done');

/** Runs a case once. Never rejects for what the target does. */
export async function runCase(
  management: Management,
  testCase: TestCase,
  to: Destination,
  limits: AttemptLimits,
): Promise<AttemptOutcome> {
  const port = testCase.refusedWith === undefined ? to.port : to.idlePort;
  const terms: ConnectionTerms = { ...testCase.connect, port, mtu: to.mtu, answerMs: limits.answerMs };
  const outcome = await PeerConnection.open(management, terms);
  if (testCase.refusedWith !== undefined) {
    if (outcome.kind === 'connected') await outcome.connection.close();
    return judgeRefusal(outcome, testCase.refusedWith);
  }
  if (outcome.kind !== 'connected') {
    const text =
      outcome.kind === 'silent' ? 'the REQ was not answered' : `the REQ was refused, reason ${outcome.reason}`;
    // A REQ with something unusual in it is what the case is about.
    return testCase.connect === undefined
      ? { kind: 'unconnected', text }
      : { kind: 'broken', text: `${text}; expected REP` };
  }
  const attempt = new Attempt(management, terms, outcome.connection, limits);
  try {
    const lacks = lackOf(testCase, attempt.caseTerms, management.wire.setsTrafficClass);
    if (lacks !== undefined) return { kind: 'lacking', text: lacks };
    for (const step of testCase.steps(attempt.caseTerms)) if ((await attempt.carryOut(step)) === DONE) break;
    return KEPT;
  } catch (error) {
    if (!(error instanceof Broken)) throw error;
    return { kind: 'broken', text: error.message };
  } finally {
    await attempt.close();
  }
}

function judgeRefusal(outcome: ConnectOutcome, reason: number): AttemptOutcome {
  if (outcome.kind === 'refused' && outcome.reason === reason) return KEPT;
  let seen = outcome.kind === 'connected' ? 'a REP' : 'nothing';
  if (outcome.kind === 'refused') seen = `REJ with reason ${outcome.reason}`;
  return {
    kind: 'broken',
    text: `REQ to a port where nobody listens: ${seen} came; expected REJ with reason ${reason}`,
  };
}

function lackOf({ needs = [] }: TestCase, { offer, depth }: CaseTerms, setsTrafficClass: boolean): string | undefined {
  if (needs.includes('traffic class') && !setsTrafficClass) return 'this port cannot set DSCP and ECN';
  const asksNothing = needs.every((need) => need === 'traffic class');
  if (offer === undefined && !asksNothing) return 'the service names no memory and no receives';
  if (needs.includes('atomics') && depth === 0) return 'the target answers no READs and atomics';
  return undefined;
}

class Attempt {
  #connection: PeerConnection;
  readonly #management: Management;
  readonly #terms: ConnectionTerms;
  readonly #limits: AttemptLimits;
  /** What was sent last, for people. */
  #after = 'the connection was made';

  constructor(management: Management, terms: ConnectionTerms, connection: PeerConnection, limits: AttemptLimits) {
    this.#management = management;
    this.#terms = terms;
    this.#connection = connection;
    this.#limits = limits;
  }

  get caseTerms(): CaseTerms {
    const { mtu, reply } = this.#connection;
    return { mtu, depth: reply.responderResources, offer: parseOffer(reply.privateData) };
  }

  close(): Promise<void> {
    return this.#connection.close();
  }

  async carryOut(step: Step): Promise<typeof DONE | undefined> {
    switch (step.do) {
      case 'send':
        this.#send(step);
        return undefined;
      case 'expect':
        await this.#expect(step.answer);
        return undefined;
      case 'silence':
      case 'silence or':
        return this.#listen(step.do === 'silence' ? undefined : step.answer);
      case 'reconnect':
        await this.#reconnect();
        return undefined;
      case 'repeat':
        await this.#repeat(step.message);
        return undefined;
    }
  }

  #send({ packet }: Step & { do: 'send' }): void {
    const { startPsn, reply } = this.#connection;
    const target = { qpn: reply.localQpn, startPsn, offer: this.caseTerms.offer };
    this.#management.wire.send(buildRequest(packet, target), packet);
    this.#after = `the packet with PSN ${packet.at}`;
  }

  async #reconnect(): Promise<void> {
    await this.close();
    const outcome = await PeerConnection.open(this.#management, this.#terms);
    if (outcome.kind !== 'connected') throw new Broken('a second connection was not made');
    this.#connection = outcome.connection;
    this.#after = 'the second connection was made';
  }

  async #repeat(message: 'REQ' | 'DREQ'): Promise<void> {
    if (message === 'REQ') {
      const answer = await this.#connection.repeatRequest();
      if (answer !== 'REP')
        throw new Broken(`after a repeated REQ ${answer ?? 'nothing'} came; expected the REP again`);
      return;
    }
    if (!(await this.#connection.disconnect())) throw new Broken('a DREQ was not answered; expected DREP');
    if (!(await this.#connection.disconnect(1))) throw new Broken('a repeated DREQ was not answered; expected DREP');
  }

  /** Passes the time in which nothing may come, except `allowed`, which ends the case. */
  async #listen(allowed: Answer | undefined): Promise<typeof DONE | undefined> {
    const received = await this.#next(this.#limits.quietMs);
    if (received === undefined) return undefined;
    if (allowed !== undefined && this.#isAnswer(received, allowed)) return DONE;
    throw this.#broken(`${this.#describe(received.packet)} came`, 'nothing');
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

  /** The packets of a READ response, in order, with their data. */
  async #expectData(answer: Answer & { kind: 'read' }): Promise<void> {
    const { at, bytes, seed, from, msn } = answer;
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
        packet.info.place === placeOf(index, packets) &&
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

  /** The next packet that is no CNP. */
  async #next(waitMs: number): Promise<Received | undefined> {
    const { clock } = this.#management.wire;
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

  /** An answer may be preceded by acknowledgements of what was before. */
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
    if (info.kind !== OP_ACK) return `${info.name} with PSN ${at}`;
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

function placeOf(index: number, packets: number): number {
  if (packets === 1) return PLACE_ONLY;
  if (index === 0) return PLACE_FIRST;
  return index === packets - 1 ? PLACE_LAST : PLACE_MIDDLE;
}

function hex(byte: number): string {
  return byte.toString(16).padStart(2, '0');
}
