/**
 * Datagram services of a connection manager (RDMA_PS_UDP; SIDR, IBTA vol. 1 §12.11). One program serves a port. Another
 * program resolves the port to a queue pair number and a Q_Key. There is no connection: from then on both exchange UD
 * messages.
 */

import { checkKind, checkOptions, checkWhole, type OptionNames } from '../core/arguments.js';
import type { Clock } from '../core/clock.js';
import { RoceError } from '../core/errors.js';
import type { RandomSource } from '../core/random.js';
import { WAIT_OPTIONS, WaitDeadline, type WaitOptions } from '../core/wait.js';
import type { IpAddress } from '../packet/address.js';
import type { RdmaDevice } from '../verbs/device.js';
import type { ProtectionDomain } from '../verbs/protection-domain.js';
import type { QueuePair } from '../verbs/queue-pair.js';
import { CmListener } from './cm-listener.js';
import type { CmProtocol } from './cm-protocol.js';
import { checkPrivateData } from './cm-request.js';
import { checkPort, dynamicPort, SERVICE_REQUEST_DATA_BYTES, UDP_QKEY, udpServiceId } from './ip-addressing.js';
import { PRIVATE_DATA_BYTES } from './messages.js';
import { NO_DATA } from './protocol-parts.js';
import type { Destination } from './queue-pair-setup.js';
import { SIDR_REJECTED, SIDR_VALID, sidrStatusText } from './reject-reason.js';
import type { ServiceEvent, ServiceQuestion } from './sidr-requester.js';
import type { ServiceAnswer, ServiceRequest } from './sidr-responder.js';

/** Options of {@link ConnectionManager.resolve}. */
export interface ResolveOptions extends WaitOptions {
  /** Private data for the serving program, at most 180 bytes. */
  readonly privateData?: Uint8Array | undefined;
}

/** Options of {@link DatagramRequest.accept}. */
export interface DatagramAcceptOptions {
  /** Private data for the requesting program, at most 136 bytes. */
  readonly privateData?: Uint8Array | undefined;
  /**
   * Q_Key that the peer's messages must carry, 32 bits: that of the queue pair. Default 0x01234567, the one of
   * RDMA_PS_UDP.
   */
  readonly qkey?: number | undefined;
}

const RESOLVE_OPTIONS: OptionNames<ResolveOptions> = { ...WAIT_OPTIONS, privateData: true };
const ACCEPT_OPTIONS: OptionNames<DatagramAcceptOptions> = { privateData: true, qkey: true };

/**
 * A resolved datagram service. Send a message to it with `qp.postSend({opcode: 'SEND', sges, ...service.destination})`.
 */
export interface DatagramService {
  /** Address handle in the protection domain of the call, QPN and Q_Key. The caller closes the handle. */
  readonly destination: Required<Destination>;
  /** Private data of the serving program: 136 bytes, padded with zeros. */
  readonly privateData: Uint8Array;
}

/** A refused request for a service: `ERR_ROCE_CONNECT` with the status and private data of the SIDR_REP. */
export class ServiceRejected extends RoceError {
  /** IBTA status code: 1 the port is not served, 2 rejected by the program, 3 no queue pair. */
  readonly status: number;
  /** Private data of the SIDR_REP, 136 bytes. */
  readonly privateData: Uint8Array;

  /** @internal */
  constructor(message: string, status: number, privateData: Uint8Array) {
    super('ERR_ROCE_CONNECT', message);
    this.status = status;
    this.privateData = privateData;
  }
}

/**
 * Takes a fresh UD queue pair to RTS, ready to send and to receive messages with the Q_Key of RDMA_PS_UDP. Rejects with
 * ERR_ROCE_INVALID_STATE.
 */
export async function startDatagrams(qp: QueuePair): Promise<void> {
  checkKind('qp', qp, typeof qp?.modify === 'function', 'a queue pair');
  await qp.modify({ state: 'INIT', pkeyIndex: 0, port: 1, qkey: UDP_QKEY });
  await qp.modify({ state: 'RTR' });
  await qp.modify({ state: 'RTS', sqPsn: 0 });
}

interface RequestDecision {
  answer(answer: ServiceAnswer): void;
  evict(): void;
}

/** A request for a datagram service (`RDMA_CM_EVENT_CONNECT_REQUEST` of RDMA_PS_UDP), to be accepted or rejected. */
export class DatagramRequest {
  /** IP address of the peer. */
  readonly remote: IpAddress;
  /** The peer's port, as UDP has one. */
  readonly remotePort: number;
  /** Private data of the request: 180 bytes, padded with zeros. */
  readonly privateData: Uint8Array;
  /** Always false: one datagram proves nothing about its sender. */
  readonly isValidated: boolean = false;
  readonly #request: ServiceRequest;
  readonly #decision: RequestDecision;

  /** @internal */
  constructor(request: ServiceRequest, decision: RequestDecision) {
    this.remote = request.remote;
    this.remotePort = request.endpoints.sourcePort;
    this.privateData = request.userData;
    this.#request = request;
    this.#decision = decision;
  }

  /** False after `accept` or `reject`, and if the request was dropped: the peer gave up, or a limit was reached. */
  get isPending(): boolean {
    return this.#request.isPending;
  }

  /**
   * Tells the peer to send to `qp`, a UD queue pair that receives (`startDatagrams`). One queue pair can serve any
   * number of peers. If the answer is lost, the peer repeats its request and gets the answer again. No effect if the
   * peer has given up. Throws ERR_ROCE_INVALID_ARGUMENT for a queue pair of another type, ERR_ROCE_INVALID_STATE for
   * one that cannot receive, ERR_ROCE_OUT_OF_RANGE.
   */
  accept(qp: QueuePair, options: DatagramAcceptOptions = {}): void {
    checkOptions('accept', options, ACCEPT_OPTIONS);
    const { privateData = NO_DATA, qkey = UDP_QKEY } = options;
    checkPrivateData(privateData, PRIVATE_DATA_BYTES.SIDR_REP);
    checkWhole('qkey', qkey, 0, 0xffff_ffff);
    if (qp.type !== 'UD') {
      throw new RoceError(
        'ERR_ROCE_INVALID_ARGUMENT',
        `the queue pair is of type ${qp.type}`,
        'a datagram service has one of type UD',
      );
    }
    if (qp.state !== 'RTR' && qp.state !== 'RTS') {
      throw new RoceError(
        'ERR_ROCE_INVALID_STATE',
        `the queue pair is in ${qp.state}`,
        'startDatagrams(qp) takes it to RTS',
      );
    }
    this.#decision.answer({ status: SIDR_VALID, qpn: qp.qpn, qkey, privateData });
  }

  /** Rejects the request, with at most 136 bytes of private data for the peer. No effect if the peer has given up. */
  reject(privateData: Uint8Array = NO_DATA): void {
    checkPrivateData(privateData, PRIVATE_DATA_BYTES.SIDR_REP);
    this.#decision.answer({ status: SIDR_REJECTED, qpn: 0, qkey: 0, privateData });
  }

  /** Drops the request without an answer. @internal */
  evict(): void {
    this.#decision.evict();
  }
}

export interface ServicesHost {
  readonly device: RdmaDevice;
  readonly clock: Clock;
  readonly random: RandomSource;
  readonly protocol: CmProtocol;
  readonly expectOpen: () => void;
  readonly onDeadlineChange: () => void;
}

export class DatagramServices {
  readonly #host: ServicesHost;
  readonly #listeners = new Set<CmListener<DatagramRequest>>();

  constructor(host: ServicesHost) {
    this.#host = host;
  }

  listen(port: number, backlog: number): CmListener<DatagramRequest> {
    checkPort(port);
    const { protocol, clock, expectOpen, onDeadlineChange } = this.#host;
    expectOpen();
    const serviceId = udpServiceId(port);
    const listener = new CmListener<DatagramRequest>(port, backlog, clock, () => {
      protocol.unlistenForDatagrams(serviceId);
      this.#listeners.delete(listener);
    });
    protocol.listenForDatagrams(serviceId, (request) => {
      const decision: RequestDecision = {
        answer: (answer) => {
          protocol.answer(request, answer, clock.nowNs());
          onDeadlineChange();
        },
        evict: () => protocol.evictRequest(request),
      };
      return listener.push(new DatagramRequest(request, decision));
    });
    this.#listeners.add(listener);
    return listener;
  }

  async resolve(
    remote: IpAddress,
    port: number,
    pd: ProtectionDomain,
    options: ResolveOptions,
  ): Promise<DatagramService> {
    checkPort(port);
    const { device, clock, random, expectOpen } = this.#host;
    const deadline = WaitDeadline.of('resolve', options, clock, RESOLVE_OPTIONS);
    const privateData = options.privateData ?? NO_DATA;
    checkPrivateData(privateData, SERVICE_REQUEST_DATA_BYTES);
    await device.link.resolve(remote);
    expectOpen();
    const question = { remote, serviceId: udpServiceId(port), sourcePort: dynamicPort(random), privateData };
    const event = await this.#ask(question, deadline);
    const target = `${remote} port ${port}`;
    if (event.type === 'UNREACHABLE') throw new RoceError('ERR_ROCE_CONNECT', `cannot resolve ${target}: no answer`);
    const { status, qpn, qkey, privateData: answer } = event.fields;
    if (event.type === 'REFUSED') {
      const message = `cannot resolve ${target}: ${sidrStatusText(status)} (${status})`;
      throw new ServiceRejected(message, status, answer);
    }
    const destination = { ah: await pd.createAh(remote), remoteQpn: qpn, remoteQkey: qkey };
    return { destination, privateData: answer };
  }

  #ask(question: ServiceQuestion, deadline: WaitDeadline | undefined): Promise<ServiceEvent> {
    const { protocol, clock, onDeadlineChange } = this.#host;
    return new Promise((resolve, reject) => {
      const requestId = protocol.ask(
        question,
        (event) => {
          stop?.();
          resolve(event);
        },
        clock.nowNs(),
      );
      const stop = deadline?.watch((error) => {
        protocol.cancel(requestId);
        reject(error);
      });
      onDeadlineChange();
    });
  }

  close(): void {
    for (const listener of [...this.#listeners]) listener.close();
    this.#host.protocol.closeRequests();
  }
}
