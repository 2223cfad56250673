/**
 * Queue pairs by RDMA CM, without a local one: REQ, RTU and DREQ made by hand (IBTA vol. 1 §12.6), and the packets
 * that the target sends to the queue pair number that the REQ named.
 */

import {
  ABOUT_REP,
  buildMad,
  type CmMad,
  encodeIpPrivateData,
  type MessageFields,
  type MessageName,
  pathMtuCode,
  REJ_CONSUMER_DEFINED,
  tcpServiceId,
} from 'rocev2/internal/cm';
import { NS_PER_MS, randomInt } from 'rocev2/internal/core';
import { PSN_MASK } from 'rocev2/internal/packet';
import { TimedInbox } from './inbox.js';
import type { Management } from './management.js';
import { type Offer, parseOffer } from './offer.js';
import { encodeWish } from './order.js';
import type { CmRetransmission, ConnectionTerms, ConnectOutcome, Connector, PeerConnection } from './peer.js';
import type { Received } from './wire.js';

const QPN_MIN = 0x100;
const PKEY = 0xffff;
/** One for all connections, so that a target which validates peers recognises the tester. */
const CA_GUID = 0x0200_00ff_fec0_4f4fn;
const TRIES = 4;
/** Codes of REQ: 67 ms for answers, and a TIMEWAIT of 1 ms. */
const RESPONSE_CODE = 14;
const ACK_TIMEOUT_CODE = 8;
const LONGEST_MRA_NS = 5_000 * NS_PER_MS;
const DEPTH = 4;
const RETRIES = 7;

export interface CmDestination {
  readonly port: number;
  readonly idlePort: number;
}

export class CmConnector implements Connector {
  readonly via = 'cm';
  readonly #management: Management;
  readonly #to: CmDestination;
  #isTarget = false;

  constructor(management: Management, to: CmDestination) {
    this.#management = management;
    this.#to = to;
  }

  lacks({ startPsn, order, isClosed }: ConnectionTerms): string | undefined {
    if (order?.timeout === 0) return 'RDMA CM takes no timeout of 0';
    const hasWish = startPsn !== undefined || order !== undefined || isClosed !== undefined;
    return hasWish && !this.#isTarget
      ? 'the service takes no wishes: no start PSN, no work, no other rights'
      : undefined;
  }

  async connect(terms: ConnectionTerms): Promise<ConnectOutcome> {
    const port = terms.toNobody === true ? this.#to.idlePort : this.#to.port;
    const outcome = await TestedConnection.open(this.#management, terms, port);
    if (outcome.kind === 'connected' && outcome.connection.offer !== undefined) this.#isTarget = true;
    return outcome;
  }
}

class TestedConnection implements PeerConnection, CmRetransmission {
  readonly mtu: number;
  readonly inbox: TimedInbox<Received>;
  readonly peerStartPsn: number;
  readonly #management: Management;
  readonly #terms: ConnectionTerms;
  readonly #port: number;
  readonly #mads: TimedInbox<CmMad>;
  readonly #commId: number;
  readonly #qpn: number;
  readonly #transactionId: bigint;
  #isEnded = false;
  #reply: MessageFields<'REP'> | undefined;
  #sendsRtu = false;
  #request: Uint8Array = new Uint8Array(0);

  private constructor(management: Management, terms: ConnectionTerms, port: number) {
    const { clock } = management.wire;
    this.#management = management;
    this.#terms = terms;
    this.#port = port;
    this.mtu = terms.mtu;
    this.peerStartPsn = randomInt(management.random, 0, PSN_MASK);
    this.inbox = new TimedInbox(clock);
    this.#mads = new TimedInbox(clock);
    this.#qpn = randomInt(management.random, QPN_MIN, PSN_MASK - 1);
    this.#commId = management.open((mad) => this.#take(mad));
    this.#transactionId = transactionOf(this.#commId);
    management.wire.listen(this.#qpn, (received) => this.inbox.push(received));
  }

  static async open(management: Management, terms: ConnectionTerms, port: number): Promise<ConnectOutcome> {
    const connection = new TestedConnection(management, terms, port);
    const outcome = await connection.#connect();
    if (outcome.kind !== 'connected') connection.#forget();
    return outcome;
  }

  get qpn(): number {
    return this.#reply!.localQpn;
  }

  get startPsn(): number {
    return this.#reply!.startingPsn;
  }

  get depth(): number {
    return this.#reply!.responderResources;
  }

  get offer(): Offer | undefined {
    return parseOffer(this.#reply!.privateData);
  }

  get retransmission(): CmRetransmission {
    return this;
  }

  async #connect(): Promise<ConnectOutcome> {
    this.#request = this.#buildRequest(this.#commId);
    const answer = await this.#ask(this.#request, ['REP', 'REJ']);
    if (answer === undefined) return { kind: 'silent', text: 'the REQ was not answered' };
    if (answer.name === 'REJ') {
      const { reason } = answer.fields;
      return { kind: 'refused', text: `the REQ was refused, reason ${reason}`, reason };
    }
    this.#reply = answer.fields as MessageFields<'REP'>;
    this.#sendsRtu = this.#terms.rtu !== false;
    if (this.#sendsRtu) this.#send('RTU', this.#ids());
    return { kind: 'connected', connection: this };
  }

  #buildRequest(commId: number): Uint8Array {
    const { mtu, lid = 0xffff, order, startPsn, isClosed } = this.#terms;
    const { initiatorDepth = DEPTH, responderResources = DEPTH } = this.#terms;
    const { local, remote } = this.#management.wire;
    const wishes = order !== undefined || startPsn !== undefined || isClosed !== undefined;
    return buildMad('REQ', transactionOf(commId), {
      localCommId: commId,
      serviceId: tcpServiceId(this.#port),
      localCaGuid: CA_GUID,
      localQpn: this.#qpn,
      responderResources,
      initiatorDepth,
      remoteResponseTimeout: RESPONSE_CODE,
      localResponseTimeout: RESPONSE_CODE,
      startingPsn: this.peerStartPsn,
      retryCount: order?.retryCount ?? RETRIES,
      pkey: PKEY,
      pathMtu: pathMtuCode(mtu),
      rnrRetryCount: order?.rnrRetryCount ?? RETRIES,
      maxCmRetries: TRIES,
      primaryLocalLid: lid,
      primaryRemoteLid: lid,
      primaryLocalGid: local.gid,
      primaryRemoteGid: remote.gid,
      primaryHopLimit: 64,
      primaryLocalAckTimeout: order?.timeout ?? ACK_TIMEOUT_CODE,
      privateData: encodeIpPrivateData(
        { source: local, destination: remote, sourcePort: 49152 + (this.#qpn & 0x3fff) },
        wishes
          ? encodeWish({
              ...(startPsn !== undefined && { startPsn }),
              ...(order !== undefined && { order }),
              ...(isClosed !== undefined && { isClosed }),
            })
          : new Uint8Array(0),
      ),
    });
  }

  async repeatRequest(): Promise<MessageName | undefined> {
    return (await this.#ask(this.#request, ['REP', 'REJ'], 1))?.name;
  }

  async requestAgain(): Promise<{ name: MessageName; reason?: number } | undefined> {
    const commId = this.#management.open((mad) => this.#mads.push(mad));
    try {
      const answer = await this.#ask(this.#buildRequest(commId), ['REP', 'REJ']);
      if (answer?.name === 'REJ') return { name: 'REJ', reason: answer.fields.reason };
      if (answer?.name !== 'REP') return undefined;
      const ids = { localCommId: commId, remoteCommId: answer.fields.localCommId };
      const refusal = { ...ids, message: ABOUT_REP, reason: REJ_CONSUMER_DEFINED };
      this.#management.send(buildMad('REJ', transactionOf(commId), refusal));
      return { name: 'REP' };
    } finally {
      this.#management.close(commId);
    }
  }

  async disconnect(tries = TRIES): Promise<boolean> {
    const mad = buildMad('DREQ', this.#transactionId, { ...this.#ids(), remoteQpn: this.qpn });
    return (await this.#ask(mad, ['DREP'], tries)) !== undefined;
  }

  async close(): Promise<void> {
    if (!this.#isEnded) await this.disconnect();
    this.#forget();
  }

  #forget(): void {
    this.#management.wire.ignore(this.#qpn);
    this.#management.close(this.#commId);
  }

  #ids() {
    return { localCommId: this.#commId, remoteCommId: this.#reply!.localCommId };
  }

  #send<N extends MessageName>(name: N, fields: Partial<MessageFields<N>>): void {
    this.#management.send(buildMad(name, this.#transactionId, fields));
  }

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
      this.#isEnded = true;
      this.#management.answerDisconnect(mad);
    } else if (mad.name === 'REP' && this.#sendsRtu) this.#send('RTU', this.#ids());
    else this.#mads.push(mad);
  }
}

function transactionOf(commId: number): bigint {
  return BigInt(commId) << 32n;
}
