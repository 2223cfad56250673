/**
 * The connection manager of a device, compatible with librdmacm over QP1. A thin driver: `CmProtocol` decides; this
 * class provides QP1 and the time, and moves queue pairs through their states.
 */

import { checkKind, checkOneOf, checkOptions, checkWhole, ifGiven, type OptionNames } from '../core/arguments.js';
import type { Clock } from '../core/clock.js';
import { type Optional, withDefaults } from '../core/defaults.js';
import { RoceError } from '../core/errors.js';
import { type RandomSource, randomInt } from '../core/random.js';
import { WaitDeadline, type WaitOptions } from '../core/wait.js';
import { RD_ATOMIC_MAX } from '../memory/ring/attribute-ranges.js';
import type { IpAddress } from '../packet/address.js';
import { PATH_MTUS } from '../packet/path-mtu.js';
import { PSN_MASK } from '../packet/psn.js';
import type { RdmaDevice } from '../verbs/device.js';
import type { ProtectionDomain } from '../verbs/protection-domain.js';
import type { QueuePair } from '../verbs/queue-pair.js';
import { CmConnection } from './cm-connection.js';
import type { CmLimits } from './cm-limits.js';
import { CmListener } from './cm-listener.js';
import type { CmProtocol } from './cm-protocol.js';
import { CM_ACCEPT_OPTIONS, type CmAcceptOptions, CmRequest, checkPrivateData } from './cm-request.js';
import { refusal } from './connection-rejected.js';
import {
  type DatagramRequest,
  type DatagramService,
  DatagramServices,
  type ResolveOptions,
} from './datagram-services.js';
import type { CmEndpoint, CmEvent } from './endpoint.js';
import { checkPort, dynamicPort, REQUEST_DATA_BYTES, remoteAddress, tcpServiceId } from './ip-addressing.js';
import { PRIVATE_DATA_BYTES } from './messages.js';
import type { IncomingRequest } from './passive-side.js';
import { ProtocolDriver } from './protocol-driver.js';
import type { CmCounters } from './protocol-parts.js';
import {
  activeParameters,
  type CmConnectionOptions,
  initializeQp,
  passiveParameters,
  pathMtuBytes,
  pathMtuCode,
  resourcesOf,
} from './qp-parameters.js';
import { type CmTiming, LINUX_TIMING } from './timing.js';

const BACKLOG_DEFAULT = 128;
const BACKLOG_MAX = 2 ** 20;
const DSCP_MAX = 63;
const TIMER_CODE_MAX = 31;
const RETRY_MAX = 7;
const CM_RETRIES_MAX = 15;
const TIMING_NAMES: OptionNames<CmTiming> = { responseTimeout: true, packetLifetime: true, maxRetries: true };

/** Options of a {@link ConnectionManager}. All are optional. */
export interface ConnectionManagerOptions {
  /** Timeouts and retries. Defaults: those of Linux. */
  readonly timing?: Optional<CmTiming> | undefined;
  /** Bounds on what peers may occupy. Defaults: see {@link CmLimits}. Throws ERR_ROCE_OUT_OF_RANGE. */
  readonly limits?: Optional<CmLimits> | undefined;
  /**
   * The addresses that a request may claim: `source`, those of its datagram (default), or `any`, for example behind
   * NAT. In both cases packets go to the source address of the datagram.
   */
  readonly claimedAddress?: 'source' | 'any' | undefined;
  /**
   * DSCP 0..63 of packets of connections that this side requests, and of QP1. Default 0. A connection that it accepts
   * has the DSCP that the peer's request names, as with Linux.
   */
  readonly dscp?: number | undefined;
  /** Default: the device's. */
  readonly clock?: Clock | undefined;
  /** Communication IDs, start PSNs and the CA GUID. Default: the system's generator. */
  readonly random?: RandomSource | undefined;
}

/** Options of the active side of a connection. */
export interface CmConnectOptions extends CmConnectionOptions, WaitOptions {
  /** Path MTU in bytes. Default: the largest that this device's port supports. */
  readonly pathMtu?: number | undefined;
  /** Retries of a request without acknowledgement, 0..7, on both sides. Default 7. */
  readonly retryCount?: number | undefined;
}

const MANAGER_OPTIONS: OptionNames<ConnectionManagerOptions> = {
  timing: true,
  limits: true,
  claimedAddress: true,
  dscp: true,
  clock: true,
  random: true,
};
const CM_CONNECT_OPTIONS: OptionNames<CmConnectOptions> = { ...CM_ACCEPT_OPTIONS, pathMtu: true, retryCount: true };

/**
 * RDMA CM of one device: connections (RDMA_PS_TCP) and datagram services (RDMA_PS_UDP). Made by
 * {@link ConnectionManager.open}.
 */
export class ConnectionManager implements AsyncDisposable {
  /** The device whose QP1 it uses. */
  readonly device: RdmaDevice;
  readonly #clock: Clock;
  readonly #random: RandomSource;
  readonly #dscp: number;
  readonly #driver: ProtocolDriver;
  readonly #protocol: CmProtocol;
  readonly #datagrams: DatagramServices;
  readonly #listeners = new Set<CmListener>();
  readonly #accepting = new Map<number, CmEndpoint>();
  readonly #connected = new Map<CmEndpoint, { readonly qp: QueuePair; readonly end: () => Promise<void> }>();
  #closing: Promise<void> | undefined;

  private constructor(device: RdmaDevice, options: ConnectionManagerOptions) {
    this.device = device;
    this.#dscp = checkWhole('dscp', options.dscp ?? 0, 0, DSCP_MAX);
    this.#driver = new ProtocolDriver(device, {
      clock: options.clock,
      random: options.random,
      timing: withDefaults(LINUX_TIMING, options.timing ?? {}),
      dscp: this.#dscp,
      limits: options.limits,
      anyClaimedAddress: options.claimedAddress === 'any',
    });
    const { clock, random, protocol } = this.#driver;
    this.#clock = clock;
    this.#random = random;
    this.#protocol = protocol;
    this.#datagrams = new DatagramServices({
      device,
      clock: this.#clock,
      random: this.#random,
      protocol: this.#protocol,
      expectOpen: () => this.#expectOpen(),
      onDeadlineChange: () => this.#driver.setTimer(),
    });
  }

  /**
   * Opens the connection manager, which takes QP1 of the device. Rejects with ERR_ROCE_BUSY if the device has one
   * already.
   */
  static async open(device: RdmaDevice, options: ConnectionManagerOptions = {}): Promise<ConnectionManager> {
    checkOptions('ConnectionManager.open', options, MANAGER_OPTIONS);
    checkKind('device', device, typeof device?.createPd === 'function', 'what openDevice() gave');
    checkManagerOptions(options);
    if (device.security?.mode === 'require') {
      throw new RoceError(
        'ERR_ROCE_CONFLICT',
        'the device requires protection, and RDMA CM has no secure mode',
        "use listen and connect over TCP, or open the device with secure: {mode: 'prefer'}",
      );
    }
    const manager = new ConnectionManager(device, options);
    await manager.#driver.open();
    device.events.on('COMM_EST', manager.#onCommunicationEstablished);
    return manager;
  }

  /** A copy. */
  counters(): CmCounters {
    return { ...this.#protocol.counters };
  }

  /**
   * Listens on a port of RDMA_PS_TCP, 1..65535. At most `backlog` requests wait to be accepted. Beyond that, the oldest
   * request of the address with the most makes room (`evicted`); an honest peer repeats it. Throws ERR_ROCE_BUSY if the
   * port has a listener.
   */
  listen(port: number, options: { readonly backlog?: number | undefined } = {}): CmListener {
    checkPort(port);
    checkOptions('listen', options, { backlog: true });
    this.#expectOpen();
    ifGiven(options.backlog, (value) => checkWhole('backlog', value, 1, BACKLOG_MAX));
    const serviceId = tcpServiceId(port);
    const listener = new CmListener(port, options.backlog ?? BACKLOG_DEFAULT, this.#clock, () => {
      this.#protocol.unlisten(serviceId);
      this.#listeners.delete(listener);
    });
    this.#protocol.listen(serviceId, (endpoint, request) => listener.push(this.#newRequest(endpoint, request)));
    this.#listeners.add(listener);
    return listener;
  }

  /**
   * Connects `qp`, in RESET or INIT (`initializeQp`), to a listener at an IP address, such as `'192.0.2.1'`. Rejects
   * with ERR_ROCE_CONNECT if there is no answer, with ConnectionRejected if the peer rejects, and with ERR_ROCE_ABORTED
   * or ERR_ROCE_TIMEOUT as the options say. The QP is then unchanged or in ERR.
   */
  async connect(
    address: IpAddress | string,
    port: number,
    qp: QueuePair,
    options: CmConnectOptions = {},
  ): Promise<CmConnection> {
    const remote = remoteAddress(this.device.address, address);
    checkPort(port);
    checkQueuePair(qp);
    const deadline = WaitDeadline.of('connect', options, this.#clock, CM_CONNECT_OPTIONS);
    checkConnectOptions(options);
    const privateData = options.privateData ?? new Uint8Array(0);
    checkPrivateData(privateData, REQUEST_DATA_BYTES);
    await this.device.link.resolve(remote);
    await initializeQp(qp);
    this.#expectOpen();
    const own = {
      ...resourcesOf(options, randomPsn(this.#random)),
      pathMtuCode: pathMtuCode(options.pathMtu ?? this.device.attributes.pathMtuMax),
      retryCount: options.retryCount ?? 7,
      ackTimeout: this.#driver.ackTimeout,
      dscp: this.#dscp,
    };
    const request = {
      ...own,
      remote,
      serviceId: tcpServiceId(port),
      sourcePort: dynamicPort(this.#random),
      qpn: qp.qpn,
      privateData,
    };
    const target = `${remote} port ${port}`;
    const { endpoint, event, end } = await this.#attempt(deadline, (onEvent) =>
      this.#protocol.connect(request, onEvent, this.#clock.nowNs()),
    );
    if (event.type !== 'CONNECT_RESPONSE') throw refusal(target, event);
    const parameters = activeParameters(remote, own, event.fields);
    await this.#bringUp(endpoint, qp, async () => {
      await qp.modify(parameters.toRtr);
      await qp.modify(parameters.toRts);
      const ended = end();
      if (ended !== undefined) throw refusal(target, ended);
      this.#protocol.confirm(endpoint, this.#clock.nowNs());
    });
    return this.#newConnection(endpoint, qp, {
      privateData: event.fields.privateData,
      pathMtu: pathMtuBytes(own.pathMtuCode),
      maxRdAtomic: parameters.toRts.maxRdAtomic!,
    });
  }

  /**
   * Serves datagrams on a port of RDMA_PS_UDP, 1..65535. The listener yields the requests of peers that look for a
   * queue pair to send to. `backlog` works as for {@link listen}. Throws ERR_ROCE_BUSY if the port is served already.
   */
  listenForDatagrams(
    port: number,
    options: { readonly backlog?: number | undefined } = {},
  ): CmListener<DatagramRequest> {
    checkOptions('listenForDatagrams', options, { backlog: true });
    ifGiven(options.backlog, (value) => checkWhole('backlog', value, 1, BACKLOG_MAX));
    return this.#datagrams.listen(port, options.backlog ?? BACKLOG_DEFAULT);
  }

  /**
   * Finds the queue pair that serves datagrams on a port of RDMA_PS_UDP at `remote` (`rdma_connect` of a UD queue
   * pair). The address handle belongs to
   * `pd`. Rejects with ERR_ROCE_CONNECT if there is no answer, with ServiceRejected if the peer rejects, and with
   * ERR_ROCE_ABORTED or ERR_ROCE_TIMEOUT as the options say.
   */
  async resolve(
    address: IpAddress | string,
    port: number,
    pd: ProtectionDomain,
    options: ResolveOptions = {},
  ): Promise<DatagramService> {
    const remote = remoteAddress(this.device.address, address);
    checkKind('pd', pd, typeof pd?.createAh === 'function', 'a protection domain');
    return this.#datagrams.resolve(remote, port, pd, options);
  }

  #newRequest(endpoint: CmEndpoint, request: IncomingRequest): CmRequest {
    return new CmRequest(endpoint.remote, request, {
      isPending: () => endpoint.state === 'REQ_RCVD',
      isValidated: () => this.#protocol.isValidated(endpoint),
      accept: (qp, options) => this.#accept(endpoint, request, qp, options),
      reject: (privateData) => this.#protocol.reject(endpoint, privateData, this.#clock.nowNs()),
      evict: () => this.#protocol.evict(endpoint),
    });
  }

  async #accept(
    endpoint: CmEndpoint,
    request: IncomingRequest,
    qp: QueuePair,
    options: CmAcceptOptions,
  ): Promise<CmConnection> {
    checkQueuePair(qp);
    const deadline = WaitDeadline.of('accept', options, this.#clock, CM_ACCEPT_OPTIONS);
    checkConnectionResources(options);
    ifGiven(options.startingPsn, (value) => checkWhole('startingPsn', value, 0, PSN_MASK));
    const privateData = options.privateData ?? new Uint8Array(0);
    checkPrivateData(privateData, PRIVATE_DATA_BYTES.REP);
    const asked = resourcesOf(options, options.startingPsn ?? randomPsn(this.#random));
    const own = {
      ...asked,
      responderResources: Math.min(asked.responderResources, request.fields.initiatorDepth),
      initiatorDepth: Math.min(asked.initiatorDepth, request.fields.responderResources),
    };
    const parameters = passiveParameters(endpoint.remote, request.fields, own);
    const peer = `the peer at ${endpoint.remote}`;
    const expectPending = () => {
      if (endpoint.state !== 'REQ_RCVD') throw new RoceError('ERR_ROCE_CONNECT', `${peer} is no longer waiting`);
    };
    expectPending();
    await this.#bringUp(endpoint, qp, async () => {
      await this.device.link.resolve(endpoint.remote);
      await initializeQp(qp);
      await qp.modify(parameters.toRtr);
      expectPending();
      this.#accepting.set(qp.qpn, endpoint);
      const { event } = await this.#attempt(deadline, (onEvent) => {
        endpoint.onEvent = onEvent;
        this.#protocol.reply(endpoint, { ...own, qpn: qp.qpn, privateData }, this.#clock.nowNs());
        return endpoint;
      }).finally(() => this.#accepting.delete(qp.qpn));
      if (event.type !== 'ESTABLISHED') throw refusal(peer, event);
      await qp.modify(parameters.toRts).catch(async (error) => {
        // The peer's first packet was invalid. A moment later it would have ended a connection, so it also does so now.
        // The NAK is still to be sent.
        if ((await qp.query()).state !== 'ERR') throw error;
      });
    });
    return this.#newConnection(endpoint, qp, {
      privateData: request.userData,
      pathMtu: pathMtuBytes(request.fields.pathMtu),
      maxRdAtomic: own.initiatorDepth,
    });
  }

  async #bringUp(endpoint: CmEndpoint, qp: QueuePair, change: () => Promise<void>): Promise<void> {
    try {
      await change();
    } catch (error) {
      this.#protocol.abandon(endpoint, this.#clock.nowNs());
      if (qp.state !== 'RESET') await qp.modify({ state: 'ERR' });
      throw error;
    }
  }

  #attempt(
    deadline: WaitDeadline | undefined,
    start: (onEvent: (event: CmEvent) => void) => CmEndpoint,
  ): Promise<{ endpoint: CmEndpoint; event: CmEvent; end: () => CmEvent | undefined }> {
    return new Promise((resolve, reject) => {
      let first: CmEvent | undefined;
      let last: CmEvent | undefined;
      const endpoint = start((event) => {
        stop?.();
        if (first === undefined) {
          first = event;
          resolve({ endpoint, event, end: () => last });
        } else last = event;
      });
      const stop = deadline?.watch((error) => {
        this.#protocol.abandon(endpoint, this.#clock.nowNs());
        this.#driver.setTimer();
        reject(error);
      });
      this.#driver.setTimer();
    });
  }

  #newConnection(
    endpoint: CmEndpoint,
    qp: QueuePair,
    facts: { privateData: Uint8Array; pathMtu: number; maxRdAtomic: number },
  ): CmConnection {
    let ended = () => {};
    const disconnected = new Promise<void>((resolve) => {
      ended = resolve;
    });
    const end = async () => {
      this.#connected.delete(endpoint);
      // A QP that its owner, or its device, has closed has ended as well.
      if (!qp.isClosed) await qp.modify({ state: 'ERR' }).catch(() => {});
      ended();
    };
    endpoint.onEvent = () => void end();
    if (endpoint.state === 'ESTABLISHED') this.#connected.set(endpoint, { qp, end });
    else void end();
    return new CmConnection({
      ...facts,
      qp,
      remote: endpoint.remote,
      disconnected,
      requestEnd: () => {
        this.#protocol.disconnect(endpoint, this.#clock.nowNs());
        this.#driver.setTimer();
      },
    });
  }

  #expectOpen(): void {
    if (this.#closing !== undefined) throw new RoceError('ERR_ROCE_CLOSED', 'the connection manager is closed');
  }

  readonly #onCommunicationEstablished = (qp: QueuePair): void => {
    const endpoint = this.#accepting.get(qp.qpn);
    if (endpoint !== undefined) this.#protocol.communicationEstablished(endpoint);
  };

  /** Ends all listeners and connections, notifies each peer once, and releases QP1. Safe to call twice. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#driver.stop();
    this.device.events.off('COMM_EST', this.#onCommunicationEstablished);
    for (const listener of [...this.#listeners]) listener.close();
    this.#datagrams.close();
    const connected = [...this.#connected.values()];
    await Promise.all(connected.map(({ qp }) => qp.settle()));
    for (const endpoint of this.#protocol.liveEndpoints()) {
      const { onEvent } = endpoint;
      this.#protocol.abandon(endpoint, this.#clock.nowNs());
      if (!this.#connected.has(endpoint)) onEvent({ type: 'UNREACHABLE' });
    }
    for (const { end } of connected) await end();
    await this.#driver.close();
  }

  /** The same as {@link close}. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

function checkQueuePair(qp: QueuePair): void {
  checkKind('qp', qp, typeof qp?.modify === 'function', 'a queue pair');
}

function checkManagerOptions({ timing, claimedAddress, clock, random }: ConnectionManagerOptions): void {
  if (timing !== undefined) {
    checkOptions('timing of ConnectionManager.open', timing, TIMING_NAMES);
    const { responseTimeout, packetLifetime, maxRetries } = timing;
    ifGiven(responseTimeout, (value) => checkWhole('responseTimeout', value, 0, TIMER_CODE_MAX));
    ifGiven(packetLifetime, (value) => checkWhole('packetLifetime', value, 0, TIMER_CODE_MAX));
    ifGiven(maxRetries, (value) => checkWhole('maxRetries', value, 0, CM_RETRIES_MAX));
  }
  ifGiven(claimedAddress, (value) => checkOneOf('claimedAddress', value, ['source', 'any']));
  ifGiven(clock, (value) => checkKind('clock', value, typeof value?.nowNs === 'function', 'a Clock'));
  ifGiven(random, (value) =>
    checkKind('random', value, typeof value?.u32 === 'function', 'a source of numbers: u32()'),
  );
}

function checkConnectOptions(options: CmConnectOptions): void {
  checkConnectionResources(options);
  ifGiven(options.pathMtu, (value) => checkOneOf('pathMtu', value, PATH_MTUS));
  ifGiven(options.retryCount, (value) => checkWhole('retryCount', value, 0, RETRY_MAX));
}

function checkConnectionResources(options: CmConnectionOptions): void {
  const { responderResources, initiatorDepth, rnrRetryCount, minRnrTimer } = options;
  ifGiven(responderResources, (value) => checkWhole('responderResources', value, 0, RD_ATOMIC_MAX));
  ifGiven(initiatorDepth, (value) => checkWhole('initiatorDepth', value, 0, RD_ATOMIC_MAX));
  ifGiven(rnrRetryCount, (value) => checkWhole('rnrRetryCount', value, 0, RETRY_MAX));
  ifGiven(minRnrTimer, (value) => checkWhole('minRnrTimer', value, 0, TIMER_CODE_MAX));
}

function randomPsn(random: RandomSource): number {
  return randomInt(random, 0, PSN_MASK);
}
