/** One identifier (rdma_cm_id) of a program: its addresses, and its endpoint of connection management. */

import { constants } from 'node:os';
import {
  activeParameters,
  dynamicPort,
  type IncomingRequest,
  type ProtocolDriver,
  passiveParameters,
  pathMtuCode,
  type ServiceRequest,
  tcpServiceId,
  UDP_QKEY,
  udpServiceId,
} from 'rocev2/internal/cm';
import { randomInt } from 'rocev2/internal/core';
import { isLoopback } from 'rocev2/internal/dgram-ext';
import { IpAddress } from 'rocev2/internal/packet';
import type { RdmaDevice } from 'rocev2/internal/verbs';
import * as cm from './layout.js';
import { connectionAttributes, initAttributes, QPS_INIT } from './qp-attributes.js';

/** What a command returns: the bytes of its result, or an errno. */
export type CmResult = Buffer | number;

/** Of the service that has the identifiers of all programs. */
export interface IdentifierHost {
  readonly device: RdmaDevice;
  readonly driver: ProtocolDriver;
  /** Reserves a port for an identifier: false if another one has it. */
  readonly takePort: (id: Identifier, port: number) => boolean;
  /** A new identifier in the channel of another one; undefined if there are too many. */
  readonly createFor: (listener: Identifier) => Identifier | undefined;
}

type Protocol = ProtocolDriver['protocol'];
type CmEndpoint = ReturnType<Protocol['connect']>;
type CmEvent = Parameters<CmEndpoint['onEvent']>[0];
type ReplyFields = Extract<CmEvent, { type: 'CONNECT_RESPONSE' }>['fields'];

const { errno } = constants;
const DONE = Buffer.alloc(0);
const PSN_MASK = 0xff_ffff;
/** 0.64 ms. Linux asks for 655 ms. */
const MIN_RNR_TIMER = 12;
const RD_ATOMIC_MAX = 16;
const BACKLOG_DEFAULT = 128;
const BACKLOG_MAX = 1024;
const SIDR_VALID = 0;
const SIDR_REJECTED = 2;
const REQUEST_DATA_BYTES = 56;
const REPLY_DATA_BYTES = 196;
const SERVICE_REQUEST_DATA_BYTES = 180;
const SERVICE_REPLY_DATA_BYTES = 136;
const REJECT_DATA_BYTES = 148;
const OPTION_LEVEL_ID = 0;
const OPTION_TOS = 0;
const OPTION_ACK_TIMEOUT = 3;
const ANY = { 4: IpAddress.parse('0.0.0.0'), 6: IpAddress.parse('::') } as const;

interface Asked {
  readonly responderResources: number;
  readonly initiatorDepth: number;
  readonly retryCount: number;
  readonly rnrRetryCount: number;
}

export class Identifier {
  readonly number: number;
  readonly portSpace: number;
  /** The program's own number; 0 until it has accepted a request. */
  uid: bigint;
  /** Events that the program has taken; librdmacm waits until it has acknowledged as many. */
  reported = 0;
  port = 0;
  readonly #host: IdentifierHost;
  readonly #emit: (id: Identifier, event: Buffer) => void;
  readonly #psn: number;
  #isBound = false;
  #boundTo: IpAddress | undefined;
  #remote: { readonly address: IpAddress; readonly port: number } | undefined;
  #asked: Asked = { responderResources: RD_ATOMIC_MAX, initiatorDepth: RD_ATOMIC_MAX, retryCount: 7, rnrRetryCount: 7 };
  #dscp = 0;
  #timeout: number | undefined;
  #endpoint: CmEndpoint | undefined;
  #incoming: IncomingRequest | undefined;
  #reply: ReplyFields | undefined;
  #service: ServiceRequest | undefined;
  #question: number | undefined;
  #listening: bigint | undefined;
  #waiting = 0;
  #listener: Identifier | undefined;
  #isClosed = false;

  constructor(
    host: IdentifierHost,
    emit: (id: Identifier, event: Buffer) => void,
    { number, uid, portSpace }: { readonly number: number; readonly uid: bigint; readonly portSpace: number },
  ) {
    this.#host = host;
    this.#emit = emit;
    this.number = number;
    this.uid = uid;
    this.portSpace = portSpace;
    this.#psn = randomInt(host.driver.random, 0, PSN_MASK);
  }

  get #isDatagram(): boolean {
    return this.portSpace === cm.PS_UDP;
  }

  get #protocol(): Protocol {
    return this.#host.driver.protocol;
  }

  get #nowNs(): number {
    return this.#host.driver.clock.nowNs();
  }

  bind(to: cm.CmAddress | undefined): CmResult {
    if (to === undefined || this.#isBound) return errno.EINVAL;
    if (to.address !== undefined && !this.#isOfDevice(to.address)) return errno.ENODEV;
    if (!this.#takePort(to.port)) return errno.EADDRINUSE;
    this.#boundTo = to.address && this.#host.device.address;
    return DONE;
  }

  /** A loopback address means the device unless devices have such addresses: libfabric tries it first. */
  #isOfDevice(given: IpAddress): boolean {
    const { address } = this.#host.device;
    if (given.equals(address)) return true;
    return given.family === address.family && isLoopback(given) && !isLoopback(address);
  }

  #takePort(port: number): boolean {
    const { driver, takePort } = this.#host;
    if (this.#isBound) return true;
    if (port !== 0) this.#isBound = takePort(this, port);
    else
      for (let tries = 0; tries < 64 && !this.#isBound; tries++)
        this.#isBound = takePort(this, dynamicPort(driver.random));
    return this.#isBound;
  }

  resolveAddress(from: cm.CmAddress | undefined, to: cm.CmAddress | undefined): CmResult {
    const { device } = this.#host;
    if (to === undefined || this.#remote !== undefined) return errno.EINVAL;
    if (from?.address !== undefined && !this.#isOfDevice(from.address)) return errno.ENODEV;
    const address = to.address ?? device.address; // As Linux does: the loopback of an address that means any.
    if (address.family !== device.address.family) return errno.EADDRNOTAVAIL;
    if (!this.#takePort(from?.port ?? 0)) return errno.EADDRINUSE;
    this.#boundTo = device.address;
    this.#remote = { address, port: to.port };
    device.link.resolve(address).then(
      () => this.#raise(cm.CM_ADDR_RESOLVED),
      () => this.#raise(cm.CM_ADDR_ERROR, -errno.EHOSTUNREACH),
    );
    return DONE;
  }

  resolveRoute(): CmResult {
    if (this.#remote === undefined) return errno.EINVAL;
    this.#raise(cm.CM_ROUTE_RESOLVED);
    return DONE;
  }

  queryRoute(): CmResult {
    const { address, attributes } = this.#host.device;
    const local = this.#boundTo ?? ANY[address.family];
    return cm.buildRoute({
      nodeGuid: this.#boundTo === undefined ? undefined : address.gid.subarray(8),
      local: { address: local, port: this.port },
      remote: this.#remote,
      pathMtuCode: pathMtuCode(attributes.pathMtuMax),
    });
  }

  listen(backlog: number): CmResult {
    if (this.#listening !== undefined || this.#remote !== undefined) return errno.EINVAL;
    if (!this.#takePort(0)) return errno.EADDRINUSE;
    const most = backlog === 0 ? BACKLOG_DEFAULT : Math.min(backlog, BACKLOG_MAX);
    if (this.#isDatagram) {
      this.#listening = udpServiceId(this.port);
      this.#protocol.listenForDatagrams(this.#listening, (request) => this.#onService(request, most));
    } else {
      this.#listening = tcpServiceId(this.port);
      this.#protocol.listen(this.#listening, (endpoint, request) => this.#onRequest(endpoint, request, most));
    }
    return DONE;
  }

  #newRequest(most: number, remote: IpAddress, port: number): Identifier | undefined {
    if (this.#waiting >= most) return undefined;
    const id = this.#host.createFor(this);
    if (id === undefined) return undefined;
    this.#waiting++;
    id.#listener = this;
    id.#isBound = true;
    id.port = this.port;
    id.#boundTo = this.#host.device.address;
    id.#remote = { address: remote, port };
    return id;
  }

  #onRequest(endpoint: CmEndpoint, request: IncomingRequest, most: number): boolean {
    const id = this.#newRequest(most, endpoint.remote, request.endpoints.sourcePort);
    if (id === undefined) return false;
    id.#endpoint = endpoint;
    id.#incoming = request;
    endpoint.onEvent = (event) => id.#onEvent(event);
    const { fields, userData } = request;
    const { localQpn: qpn, srq, flowControl, retryCount, rnrRetryCount } = fields;
    // What one end issues is what the other answers.
    const depths = { responderResources: fields.initiatorDepth, initiatorDepth: fields.responderResources };
    const offered = { qpn, srq, flowControl, retryCount, rnrRetryCount, ...depths };
    id.#asked = { ...depths, retryCount, rnrRetryCount };
    const head = { uid: this.uid, id: id.number, event: cm.CM_CONNECT_REQUEST };
    this.#emit(this, cm.buildConnectionEvent(head, { ...offered, privateData: userData }));
    return true;
  }

  #onService(request: ServiceRequest, most: number): boolean {
    const { remote, endpoints, userData } = request;
    const id = this.#newRequest(most, remote, endpoints.sourcePort);
    if (id === undefined) return false;
    id.#service = request;
    const head = { uid: this.uid, id: id.number, event: cm.CM_CONNECT_REQUEST };
    this.#emit(this, cm.buildDatagramEvent(head, { qpn: 0, qkey: 0, remote, privateData: userData }));
    return true;
  }

  connect(parameters: cm.ConnectionParameters): CmResult {
    const remote = this.#remote;
    if (remote === undefined || this.#endpoint !== undefined || this.#question !== undefined) return errno.EINVAL;
    const { privateData } = parameters;
    if (privateData.length > (this.#isDatagram ? SERVICE_REQUEST_DATA_BYTES : REQUEST_DATA_BYTES)) return errno.EINVAL;
    const to = { remote: remote.address, sourcePort: this.port, privateData };
    if (this.#isDatagram) {
      const question = { ...to, serviceId: udpServiceId(remote.port) };
      this.#question = this.#protocol.ask(question, (event) => this.#onServiceEvent(event), this.#nowNs);
    } else {
      this.#ask(parameters);
      const { attributes } = this.#host.device;
      const request = {
        ...to,
        ...this.#asked,
        serviceId: tcpServiceId(remote.port),
        qpn: parameters.qpn,
        startingPsn: this.#psn,
        pathMtuCode: pathMtuCode(attributes.pathMtuMax),
      };
      this.#endpoint = this.#protocol.connect(request, (event) => this.#onEvent(event), this.#nowNs);
    }
    return this.#sent();
  }

  #ask({ responderResources, initiatorDepth, retryCount, rnrRetryCount }: Asked): void {
    this.#asked = {
      responderResources: Math.min(responderResources, RD_ATOMIC_MAX),
      initiatorDepth: Math.min(initiatorDepth, RD_ATOMIC_MAX),
      retryCount: Math.min(retryCount, 7),
      rnrRetryCount: Math.min(rnrRetryCount, 7),
    };
  }

  #sent(): CmResult {
    this.#host.driver.setTimer();
    return DONE;
  }

  /** Of a request; or, of an active identifier whose queue pair is ready: sends the RTU. */
  accept(uid: bigint, parameters: cm.ConnectionParameters & { readonly isValid: boolean }): CmResult {
    if (!parameters.isValid) {
      if (this.#endpoint?.state !== 'REP_RCVD') return errno.EINVAL;
      this.#protocol.confirm(this.#endpoint, this.#nowNs);
      return this.#sent();
    }
    const { privateData, qpn, qkey } = parameters;
    if (privateData.length > (this.#isDatagram ? SERVICE_REPLY_DATA_BYTES : REPLY_DATA_BYTES)) return errno.EINVAL;
    if (this.#service !== undefined) {
      this.#protocol.answer(
        this.#service,
        { status: SIDR_VALID, qpn, qkey: qkey === 0 ? UDP_QKEY : qkey, privateData },
        this.#nowNs,
      );
    } else {
      if (this.#endpoint?.state !== 'REQ_RCVD') return errno.EINVAL;
      this.#ask({ ...parameters, retryCount: this.#asked.retryCount });
      this.#protocol.reply(this.#endpoint, { ...this.#asked, qpn, startingPsn: this.#psn, privateData }, this.#nowNs);
    }
    this.uid = uid;
    this.#decided();
    return this.#sent();
  }

  reject(privateData: Uint8Array): CmResult {
    if (privateData.length > (this.#isDatagram ? SERVICE_REPLY_DATA_BYTES : REJECT_DATA_BYTES)) return errno.EINVAL;
    if (this.#service !== undefined) {
      this.#protocol.answer(this.#service, { status: SIDR_REJECTED, qpn: 0, qkey: 0, privateData }, this.#nowNs);
    } else {
      const { state } = this.#endpoint ?? {};
      if (state !== 'REQ_RCVD' && state !== 'REP_RCVD') return errno.EINVAL;
      this.#protocol.reject(this.#endpoint!, privateData, this.#nowNs);
    }
    this.#decided();
    return this.#sent();
  }

  #decided(): void {
    if (this.#listener === undefined) return;
    this.#listener.#waiting--;
    this.#listener = undefined;
  }

  disconnect(): CmResult {
    if (this.#endpoint === undefined) return errno.EINVAL;
    this.#protocol.disconnect(this.#endpoint, this.#nowNs);
    return this.#sent();
  }

  setOption(level: number, name: number, value: number): CmResult {
    if (level !== OPTION_LEVEL_ID || name > OPTION_ACK_TIMEOUT) return errno.EOPNOTSUPP;
    if (name === OPTION_TOS) this.#dscp = value >> 2;
    if (name === OPTION_ACK_TIMEOUT) this.#timeout = value & 31;
    return DONE;
  }

  /** A queue pair that has received a packet is connected, even if the RTU was lost. */
  communicationEstablished(): CmResult {
    if (this.#endpoint === undefined) return errno.EINVAL;
    this.#protocol.communicationEstablished(this.#endpoint);
    return DONE;
  }

  get isListening(): boolean {
    return this.#listening !== undefined;
  }

  /** The queue pair that it connects, or undefined. */
  get qpn(): number | undefined {
    return this.#endpoint?.localQpn;
  }

  initQpAttr(state: number): CmResult {
    if (state === QPS_INIT) return initAttributes(this.#isDatagram, this.#endpoint !== undefined);
    const parameters = this.#parameters();
    if (parameters === undefined) return errno.EINVAL;
    return connectionAttributes(state, parameters, this.#endpoint!.remote, this.#timeout) ?? errno.EINVAL;
  }

  #parameters(): ReturnType<typeof activeParameters> | undefined {
    const { driver, device } = this.#host;
    const own = { ...this.#asked, startingPsn: this.#psn, minRnrTimer: MIN_RNR_TIMER, dscp: this.#dscp };
    if (this.#endpoint === undefined) return undefined;
    const { remote } = this.#endpoint;
    if (this.#incoming !== undefined) return passiveParameters(remote, this.#incoming.fields, own);
    const path = { pathMtuCode: pathMtuCode(device.attributes.pathMtuMax), ackTimeout: driver.ackTimeout };
    return this.#reply === undefined ? undefined : activeParameters(remote, { ...own, ...path }, this.#reply);
  }

  #raise(event: number, status = 0): void {
    if (!this.#isClosed) this.#emit(this, cm.buildEvent({ uid: this.uid, id: this.number, event, status }));
  }

  #onEvent(event: CmEvent): void {
    const head = { uid: this.uid, id: this.number };
    switch (event.type) {
      case 'CONNECT_RESPONSE': {
        const { fields } = event;
        this.#reply = fields;
        const { localQpn: qpn, srq, flowControl, rnrRetryCount, privateData } = fields;
        const depths = { responderResources: fields.initiatorDepth, initiatorDepth: fields.responderResources };
        const offered = { qpn, srq, flowControl, rnrRetryCount, privateData, ...depths };
        this.#emit(this, cm.buildConnectionEvent({ ...head, event: cm.CM_CONNECT_RESPONSE }, offered));
        return;
      }
      case 'REJECTED': {
        const { reason: status, privateData } = event;
        if (this.uid !== 0n) {
          this.#emit(this, cm.buildConnectionEvent({ ...head, event: cm.CM_REJECTED, status }, { privateData }));
        }
        return;
      }
      case 'ESTABLISHED':
        this.#raise(cm.CM_ESTABLISHED);
        return;
      case 'DISCONNECTED':
        this.#raiseAccepted(cm.CM_DISCONNECTED, 0);
        return;
      default:
        this.#raiseAccepted(cm.CM_UNREACHABLE, -errno.ETIMEDOUT);
    }
  }

  /** A program that has not accepted a request yet learns from `accept` that it has ended. */
  #raiseAccepted(event: number, status: number): void {
    if (this.uid !== 0n) this.#raise(event, status);
  }

  #onServiceEvent(event: Parameters<Parameters<Protocol['ask']>[1]>[0]): void {
    this.#question = undefined;
    if (event.type !== 'RESOLVED') {
      this.#raise(cm.CM_UNREACHABLE, event.type === 'REFUSED' ? event.fields.status : -errno.ETIMEDOUT);
      return;
    }
    const { qpn, qkey, privateData } = event.fields;
    const head = { uid: this.uid, id: this.number, event: cm.CM_ESTABLISHED };
    this.#emit(this, cm.buildDatagramEvent(head, { qpn, qkey, privateData, remote: this.#remote!.address }));
  }

  /** Ends what it has begun; the peer is notified. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#decided();
    if (this.#listening !== undefined) {
      if (this.#isDatagram) this.#protocol.unlistenForDatagrams(this.#listening);
      else this.#protocol.unlisten(this.#listening);
    }
    if (this.#service !== undefined) this.#protocol.evictRequest(this.#service);
    if (this.#question !== undefined) this.#protocol.cancel(this.#question);
    if (this.#endpoint !== undefined) this.#protocol.abandon(this.#endpoint, this.#nowNs);
    this.#host.driver.setTimer();
  }
}
