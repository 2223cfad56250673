/**
 * A connection that the tester holds without a queue pair: REQ, RTU and DREQ made by hand (IBTA vol. 1 §12.6), and the packets that the target
 * sends to the queue pair number that the REQ named.
 */

import { encodeIpPrivateData, tcpServiceId } from '../cm/ip-addressing.js';
import { buildMad, type CmMad, type MessageFields, type MessageName, parseMad } from '../cm/messages.js';
import { pathMtuCode } from '../cm/qp-parameters.js';
import { type RandomSource, randomInt } from '../core/random.js';
import { NS_PER_MS } from '../core/units.js';
import { UD_SEND_ONLY } from '../packet/opcode.js';
import { PSN_MASK } from '../packet/psn.js';
import { emitRoce } from '../packet/roce.js';
import { Inbox } from './inbox.js';
import type { Received, TestWire } from './wire.js';

const GSI_QPN = 1;
const GSI_QKEY = 0x8001_0000;
const QPN_MIN = 0x100;
const PKEY = 0xffff;
/** One for all connections: whoever remembers that a set-up was completed knows the tester again. */
const CA_GUID = 0x0200_00ff_fec0_4f4fn;
/** How often a message of connection management is sent until it is answered. */
const TRIES = 4;
/** Codes of REQ: 67 ms for answers, and a TIMEWAIT of 1 ms. */
const RESPONSE_CODE = 14;
const ACK_TIMEOUT_CODE = 8;
const LONGEST_MRA_NS = 5_000 * NS_PER_MS;

/** How to connect. */
export interface ConnectionTerms {
  /** rdma_cm port of the target. */
  readonly port: number;
  /** Path MTU in bytes. */
  readonly mtu: number;
  /** How long an answer may take. */
  readonly answerMs: number;
  /** False: no RTU is sent. */
  readonly rtu?: boolean;
  /** LIDs of the primary path; default 0xffff, as over Ethernet. */
  readonly lid?: number;
}

/** What came of a REQ. */
export type ConnectOutcome =
  | { readonly kind: 'connected'; readonly connection: PeerConnection }
  | { readonly kind: 'refused'; readonly reason: number }
  | { readonly kind: 'silent' };

/** The management datagrams between the tester and the target. */
export class Management {
  /** Carries them. */
  readonly wire: TestWire;
  /** Communication IDs, queue pair numbers and PSNs. */
  readonly random: RandomSource;
  readonly #byCommId = new Map<number, (mad: CmMad) => void>();
  #psn = 0;

  constructor(wire: TestWire, random: RandomSource) {
    this.wire = wire;
    this.random = random;
    wire.listen(GSI_QPN, ({ payload }) => {
      const mad = parseMad(payload);
      if (typeof mad === 'string' || !('remoteCommId' in mad.fields)) return;
      this.#byCommId.get(mad.fields.remoteCommId)?.(mad);
    });
  }

  /** Sends a message of connection management. */
  send(mad: Uint8Array): void {
    this.#psn = (this.#psn + 1) & PSN_MASK;
    const to = { destQpn: GSI_QPN, sourceQpn: GSI_QPN, qkey: GSI_QKEY };
    this.wire.send(emitRoce({ opcode: UD_SEND_ONLY, psn: this.#psn, ...to }, mad));
  }

  /** A communication ID whose messages `take` gets. */
  open(take: (mad: CmMad) => void): number {
    const commId = randomInt(this.random, 1, 0xffffffff);
    this.#byCommId.set(commId, take);
    return commId;
  }

  /** Messages about it are ignored from now on. */
  close(commId: number): void {
    this.#byCommId.delete(commId);
  }
}

/** A connection, from its REP to its DREP. */
export class PeerConnection {
  /** Path MTU in bytes. */
  readonly mtu: number;
  /** Packets of the target's queue pair, oldest first. */
  readonly inbox: Inbox<Received>;
  /** The target has sent a DREQ. */
  isEnded = false;
  readonly #management: Management;
  readonly #terms: ConnectionTerms;
  readonly #mads: Inbox<CmMad>;
  readonly #commId: number;
  readonly #qpn: number;
  readonly #transactionId: bigint;
  #reply: MessageFields<'REP'> | undefined;
  #sendsRtu = false;
  #request: Uint8Array = new Uint8Array(0);

  private constructor(management: Management, terms: ConnectionTerms) {
    const { clock } = management.wire;
    this.#management = management;
    this.#terms = terms;
    this.mtu = terms.mtu;
    this.inbox = new Inbox(clock);
    this.#mads = new Inbox(clock);
    this.#qpn = randomInt(management.random, QPN_MIN, PSN_MASK - 1);
    this.#commId = management.open((mad) => this.#take(mad));
    this.#transactionId = BigInt(this.#commId) << 32n;
    management.wire.listen(this.#qpn, (received) => this.inbox.push(received));
  }

  /** Sends REQ until it is answered, and RTU. */
  static async open(management: Management, terms: ConnectionTerms): Promise<ConnectOutcome> {
    const connection = new PeerConnection(management, terms);
    const outcome = await connection.#connect();
    if (outcome.kind !== 'connected') connection.#forget();
    return outcome;
  }

  /** What the target said of itself. */
  get reply(): MessageFields<'REP'> {
    return this.#reply!;
  }

  /** PSN of the first request: the one that the target said it expects first. */
  get startPsn(): number {
    return this.reply.startingPsn;
  }

  async #connect(): Promise<ConnectOutcome> {
    this.#request = this.#buildRequest();
    const answer = await this.#ask(this.#request, ['REP', 'REJ']);
    if (answer === undefined) return { kind: 'silent' };
    if (answer.name === 'REJ') return { kind: 'refused', reason: answer.fields.reason };
    this.#reply = answer.fields as MessageFields<'REP'>;
    this.#sendsRtu = this.#terms.rtu !== false;
    if (this.#sendsRtu) this.#send('RTU', this.#ids());
    return { kind: 'connected', connection: this };
  }

  #buildRequest(): Uint8Array {
    const { port, mtu, lid = 0xffff } = this.#terms;
    const { wire, random } = this.#management;
    const { local, remote } = wire;
    return buildMad('REQ', this.#transactionId, {
      localCommId: this.#commId,
      serviceId: tcpServiceId(port),
      localCaGuid: CA_GUID,
      localQpn: this.#qpn,
      responderResources: 4,
      initiatorDepth: 4,
      remoteResponseTimeout: RESPONSE_CODE,
      localResponseTimeout: RESPONSE_CODE,
      startingPsn: randomInt(random, 0, PSN_MASK),
      retryCount: 7,
      pkey: PKEY,
      pathMtu: pathMtuCode(mtu),
      rnrRetryCount: 7,
      maxCmRetries: TRIES,
      primaryLocalLid: lid,
      primaryRemoteLid: lid,
      primaryLocalGid: local.gid,
      primaryRemoteGid: remote.gid,
      primaryHopLimit: 64,
      primaryLocalAckTimeout: ACK_TIMEOUT_CODE,
      privateData: encodeIpPrivateData(
        { source: local, destination: remote, sourcePort: 49152 + (this.#qpn & 0x3fff) },
        new Uint8Array(0),
      ),
    });
  }

  /** Sends the REQ once more, as if its answer had been lost; the answer, or undefined. */
  async repeatRequest(): Promise<MessageName | undefined> {
    return (await this.#ask(this.#request, ['REP', 'REJ'], 1))?.name;
  }

  /** Sends a DREQ; whether a DREP came. `tries`: how often the DREQ is sent. */
  async disconnect(tries = TRIES): Promise<boolean> {
    const mad = buildMad('DREQ', this.#transactionId, { ...this.#ids(), remoteQpn: this.reply.localQpn });
    return (await this.#ask(mad, ['DREP'], tries)) !== undefined;
  }

  /** Ends the connection if the target has not, and forgets it. */
  async close(): Promise<void> {
    if (!this.isEnded) await this.disconnect();
    this.#forget();
  }

  #forget(): void {
    this.#management.wire.ignore(this.#qpn);
    this.#management.close(this.#commId);
  }

  #ids() {
    return { localCommId: this.#commId, remoteCommId: this.reply.localCommId };
  }

  #send<N extends MessageName>(name: N, fields: Partial<MessageFields<N>>): void {
    this.#management.send(buildMad(name, this.#transactionId, fields));
  }

  /** Sends `mad` until one of the answers comes; an MRA asks for patience. */
  async #ask(mad: Uint8Array, answers: readonly MessageName[], tries = TRIES): Promise<CmMad | undefined> {
    const { clock } = this.#management.wire;
    for (let turn = 0; turn < tries; turn++) {
      this.#management.send(mad);
      let deadlineNs = clock.nowNs() + this.#terms.answerMs * NS_PER_MS;
      for (;;) {
        const answer = await this.#mads.next(deadlineNs);
        if (answer === undefined) break;
        if (answers.includes(answer.name)) return answer;
        if (answer.name === 'MRA') deadlineNs = clock.nowNs() + LONGEST_MRA_NS;
      }
    }
    return undefined;
  }

  #take(mad: CmMad): void {
    if (mad.name === 'DREQ') {
      this.isEnded = true;
      this.#management.send(
        buildMad('DREP', mad.transactionId, {
          localCommId: this.#commId,
          remoteCommId: mad.fields.localCommId,
        }),
      );
    } else if (mad.name === 'REP' && this.#sendsRtu) this.#send('RTU', this.#ids());
    else this.#mads.push(mad);
  }
}
