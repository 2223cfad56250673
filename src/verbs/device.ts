/** An open RDMA device: the application's side of one NIC. */

import { checkWhole, type OptionNames } from '../core/arguments.js';
import { BUFFER_BYTES_MAX, bufferOver } from '../core/buffer-over.js';
import type { Clock } from '../core/clock.js';
import { RoceError } from '../core/errors.js';
import type { CommandArgs, CommandName, CommandResult } from '../memory/ring/commands.js';
import { type CounterName, counterSnapshot } from '../memory/ring/counters.js';
import type { EngineLink } from '../memory/ring/engine-link.js';
import {
  EVENT_CNP_SUSPICIOUS,
  EVENT_COMM_EST,
  EVENT_COMMAND_DONE,
  EVENT_COMPLETION,
  EVENT_CQ_ERR,
  EVENT_QP_FATAL,
  EVENT_QP_LAST_WQE_REACHED,
  EVENT_QP_REORDER_CONFLICT,
  EVENT_QP_SETTLED,
  EVENT_QP_SOURCE_PORT,
  EVENT_QP_UNSENT_RESPONSE,
  EVENT_SQ_DRAINED,
  EVENT_SRQ_LIMIT_REACHED,
  SOURCE_PORT_FLOW,
} from '../memory/ring/enums.js';
import type { RingEvent } from '../memory/ring/event-ring.js';
import { IpAddress } from '../packet/address.js';
import { CompletionQueue } from './completion-queue.js';
import type { EndpointServer } from './estats/endpoint-server.js';
import type { Estats } from './estats/estats.js';
import { MemoryGrants } from './memory-grants.js';
import { ProtectionDomain } from './protection-domain.js';
import { QueueMemory } from './queue-memory.js';
import type { QueuePair } from './queue-pair.js';
import { Resource } from './resource.js';
import { ScratchMemory } from './scratch-memory.js';
import type { DeviceSecurity } from './security.js';
import type { SharedReceiveQueue } from './shared-receive-queue.js';
import { TypedEvents } from './typed-events.js';

/** Capabilities of a device, as from `ibv_query_device` and `ibv_query_port`. */
export interface DeviceAttributes {
  /** The IP address it was opened on: its GID. */
  readonly address: IpAddress;
  /** UDP port that peers send to. */
  readonly udpPort: number;
  /** UDP source port of sent packets; `flow`: each connection has its own, computed from both QPNs. */
  readonly sourcePort: number | 'flow';
  /** Largest path MTU in bytes. */
  readonly pathMtuMax: number;
  /** Packets of 4 KiB that the receive buffer holds, and so a peer may have in flight. */
  readonly receiveBudgetPackets: number;
}

/** Asynchronous events (`ibv_event_type`), with the object that each concerns. */
export interface DeviceEvents {
  /** The first packet came while the queue pair was still in RTR. */
  COMM_EST: [qp: QueuePair];
  /** The send queue has drained after a move to SQD that requested it (`enSqdAsyncNotify`). */
  SQ_DRAINED: [qp: QueuePair];
  /** The queue pair went to ERR by its own error. */
  QP_FATAL: [qp: QueuePair];
  /** The queue pair is in ERR and takes no more receives from its shared receive queue. */
  QP_LAST_WQE_REACHED: [qp: QueuePair];
  /**
   * A packet came from the peer's address, but from another UDP source port than the peer's: dropped, and counted in
   * `rx_drop_source_port`. It is forged, unless the peer changes its port. Once a connection.
   */
  QP_SOURCE_PORT: [qp: QueuePair];
  /**
   * A response, probably forged, named a PSN that was never sent: ignored, and counted in `unsent_response`. Once a
   * connection.
   */
  QP_UNSENT_RESPONSE: [qp: QueuePair];
  /**
   * Two different packets came with one PSN: one of them is forged. Selective repeat only; counted in
   * `reorder_conflicts`. Once a connection.
   */
  QP_REORDER_CONFLICT: [qp: QueuePair];
  /** Fewer receives are left than {@link SharedReceiveQueue.setLimit} said. */
  SRQ_LIMIT_REACHED: [srq: SharedReceiveQueue];
  /** Completions were lost because the queue was not polled; its queue pairs stop. */
  CQ_ERR: [cq: CompletionQueue];
  /**
   * Congestion notifications came that no packet of the queue pair can have caused: they are forged in the name of
   * `peer`, or the peer's NIC is broken. At most once in two seconds.
   */
  CNP_SUSPICIOUS: [qp: QueuePair, peer: IpAddress];
  /** The NIC has failed: every queue pair is in ERR, every call rejects with this cause. */
  DEVICE_FATAL: [cause: RoceError];
}

const EVENTS: OptionNames<DeviceEvents> = {
  COMM_EST: true,
  SQ_DRAINED: true,
  QP_FATAL: true,
  QP_LAST_WQE_REACHED: true,
  QP_SOURCE_PORT: true,
  QP_UNSENT_RESPONSE: true,
  QP_REORDER_CONFLICT: true,
  SRQ_LIMIT_REACHED: true,
  CQ_ERR: true,
  CNP_SUSPICIOUS: true,
  DEVICE_FATAL: true,
};

type QpEventName = {
  [N in keyof DeviceEvents]: DeviceEvents[N] extends [qp: QueuePair] ? N : never;
}[keyof DeviceEvents];

const QP_EVENTS: ReadonlyMap<number, QpEventName> = new Map([
  [EVENT_QP_SOURCE_PORT, 'QP_SOURCE_PORT'],
  [EVENT_QP_UNSENT_RESPONSE, 'QP_UNSENT_RESPONSE'],
  [EVENT_QP_REORDER_CONFLICT, 'QP_REORDER_CONFLICT'],
  [EVENT_COMM_EST, 'COMM_EST'],
  [EVENT_SQ_DRAINED, 'SQ_DRAINED'],
  [EVENT_QP_FATAL, 'QP_FATAL'],
  [EVENT_QP_LAST_WQE_REACHED, 'QP_LAST_WQE_REACHED'],
]);

interface PendingCommand {
  readonly index: number;
  readonly settle: () => void;
  readonly reject: (error: RoceError) => void;
}

/**
 * First address given to regions without a requested one: looks like a heap address, so that zero and small offsets are
 * never valid.
 */
const FIRST_IOVA = 0x7f00_0000_0000n;
const PAGE = 4096n;
/** Commands of objects that end with the device. */
const ENDING_COMMANDS = /^(dealloc|dereg|destroy|settle)/;

/** An open device (`ibv_context`), made by {@link openDevice}. Everything below it closes with it. */
export class RdmaDevice extends Resource {
  readonly #link: EngineLink;
  /** Telemetry, if the device was opened with it. @internal */
  readonly estats: Estats | undefined;
  /** The telemetry's clock; 0 without telemetry, where nobody asks. @internal */
  readonly telemetryNowNs: () => number;
  /** Takes the events of objects that commands of another program made; type 0: some were lost. @internal */
  onForeignEvent: (type: number, id: number) => void = () => {};
  /** `COMM_EST`, `QP_FATAL` and the other async events. */
  readonly events = new TypedEvents<DeviceEvents>(EVENTS);
  /** Memory of the library's own, used again and again. @internal */
  readonly scratch = new ScratchMemory((bytes, populates) => this.#allocate(bytes, populates));
  /** Regions that peers map, and those of peers; undefined where memory cannot be mapped. @internal */
  readonly grants: MemoryGrants | undefined;
  /** Rings of queue pairs, used again and again. @internal */
  readonly rings = new QueueMemory((bytes) => this.memoryOf(bytes));
  /** How it proves itself to peers; undefined where packets are not protected. @internal */
  security: DeviceSecurity | undefined;
  readonly #pending: PendingCommand[] = [];
  readonly #waitingForRoom: Array<() => void> = [];
  readonly #cqs = new Map<number, CompletionQueue>();
  readonly #srqs = new Map<number, SharedReceiveQueue>();
  readonly #qps = new Map<number, QueuePair>();
  #server: EndpointServer | undefined;
  readonly #event: RingEvent = { type: 0, id: 0 };
  #nextIova = FIRST_IOVA;
  #attributes: DeviceAttributes | undefined;
  #released = false;
  #failure: RoceError | undefined;

  private constructor(link: EngineLink, estats: Estats | undefined) {
    super(undefined);
    this.#link = link;
    this.estats = estats;
    this.grants = link.mapping && new MemoryGrants(link.mapping, link);
    this.telemetryNowNs = estats?.nowNs ?? (() => 0);
    link.onInterrupt = () => this.#onInterrupt();
    link.onFailure = (cause) => this.#onFailure(cause);
  }

  /** Takes over a link to a running NIC. Most programs call `openDevice` instead. */
  static async over(link: EngineLink, estats?: Estats): Promise<RdmaDevice> {
    const device = new RdmaDevice(link, estats);
    const { gid, sourcePort, ...rest } = await device.command('queryDevice', {});
    device.#attributes = {
      address: IpAddress.fromBytes(gid),
      sourcePort: sourcePort === SOURCE_PORT_FLOW ? 'flow' : sourcePort,
      ...rest,
    };
    return device;
  }

  /** Its capabilities; they do not change while it is open. */
  get attributes(): DeviceAttributes {
    return this.#attributes!;
  }

  /** The IP address it was opened on. */
  get address(): IpAddress {
    return this.attributes.address;
  }

  /** The clock of its engine, with timers on the application's side: the system's, or a simulation's. */
  get clock(): Clock {
    return this.#link;
  }

  /** For people: a description of the port. */
  get portDescription(): string {
    return this.#link.portDescription;
  }

  /** A copy of all counters. */
  counters(): Record<CounterName, number> {
    if (!this.isClosed) this.#link.refreshCounters();
    return counterSnapshot(this.#link.counters);
  }

  /**
   * Polls the NIC within this call: it processes arrived datagrams, answers them, and sends posted requests. One call
   * takes about 120 short datagrams in and sends about 60. So a loop that polls for a completion needs no event loop,
   * like one over `ibv_poll_cq`:
   *
   *     let wc = cq.pollOne();
   *     while (wc === undefined && device.poll()) wc = cq.pollOne();
   *     wc ??= await cq.next();
   *
   * False: not done; the event loop has to run. Then the NIC has its own thread (engine `worker`) or virtual time, or
   * Node reads its port (`io: 'dgram'`, frame ports). Or the device is closed, or the NIC itself has called the caller
   * (a scheme of an extension). Never throws and never calls the program back: `cq.wait()` and events resolve after the
   * loop. Timers and signals wait while the program spins: let the event loop run now and then, by `await` of a
   * `setImmediate`.
   */
  poll(): boolean {
    return this.#link.poll?.() ?? false;
  }

  /**
   * Makes the NIC serve all doorbells within this call: posted requests leave now. Without it an inline NIC serves them
   * together after the callback that posted them, in fewer system calls. Use it in a program that computes between two
   * requests, so that the peer works during that time. No effect where the NIC serves doorbells itself (engine
   * `worker`, virtual time) or cannot read its port now (`io: 'dgram'`, frame ports). Never throws.
   */
  flushDoorbells(): void {
    this.#link.poll?.();
  }

  /** A new protection domain (`ibv_alloc_pd`). Rejects with ERR_ROCE_CLOSED when the device is closed. */
  async createPd(): Promise<ProtectionDomain> {
    const { pd } = await this.command('allocPd', {});
    return new ProtectionDomain(this, pd);
  }

  /** A completion queue for at least `depth` completions (1..2^20). */
  async createCq(depth: number): Promise<CompletionQueue> {
    return CompletionQueue.create(this, depth);
  }

  /**
   * New zeroed memory that the NIC can reach, as `regMr` makes it for a length. Its pages are there at once, up to 1
   * GiB, so that no transfer waits for the kernel to make them; the call takes that time instead. Throws
   * ERR_ROCE_OUT_OF_RANGE for an invalid number of bytes, or more than are available.
   */
  allocate(bytes: number): Buffer {
    checkWhole('bytes', bytes, 0, BUFFER_BYTES_MAX);
    const mapped = this.#link.mapping?.allocate(bytes);
    return mapped === undefined ? this.allocateLocal(bytes) : this.#bufferOf(mapped, bytes, true);
  }

  /** As {@link allocate}, for memory that peers do not map. @internal */
  allocateLocal(bytes: number): Buffer {
    return this.#allocate(bytes, true);
  }

  #allocate(bytes: number, populates: boolean): Buffer {
    return this.#bufferOf(this.memoryOf(bytes), bytes, populates);
  }

  #bufferOf(memory: ArrayBufferLike, bytes: number, populates: boolean): Buffer {
    const buffer = bufferOver(memory, 0, bytes);
    if (populates) this.#link.populate(buffer);
    return buffer;
  }

  /** Throws ERR_ROCE_OUT_OF_RANGE where there is no more memory. @internal */
  memoryOf(bytes: number): ArrayBufferLike {
    try {
      return this.#link.allocate(bytes);
    } catch (cause) {
      const text = `${bytes} bytes of memory are not available`;
      throw new RoceError('ERR_ROCE_OUT_OF_RANGE', text, 'take less', { cause });
    }
  }

  /** Whether these bytes can be registered: a NIC in a worker reaches shared memory only. */
  reaches(memory: Uint8Array): boolean {
    return this.#link.reaches(memory.buffer);
  }

  /** @internal */
  get link(): EngineLink {
    return this.#link;
  }

  /** Runs a control operation on the NIC. @internal */
  async command<N extends CommandName>(name: N, args: CommandArgs<N>): Promise<CommandResult<N>> {
    const ring = this.#link.commands;
    for (;;) {
      if (this.isClosed || this.#failure !== undefined) {
        const isGone = this.#released || this.#failure !== undefined;
        const givesBack = ENDING_COMMANDS.test(name);
        const notifiesPeer = name === 'createAh' && !isGone; // RDMA CM ends its connections with the device.
        if (!givesBack && !notifiesPeer) {
          throw this.#failure ?? new RoceError('ERR_ROCE_CLOSED', 'the device is closed');
        }
        if (isGone) return {} as CommandResult<N>;
      }
      if (!ring.isFull && this.#pending.length < ring.depth) break;
      await new Promise<void>((resolve) => this.#waitingForRoom.push(resolve));
    }
    return new Promise((resolve, reject) => {
      const index = ring.submit(name, args);
      const settle = () => {
        try {
          resolve(ring.answer(index, name));
        } catch (error) {
          reject(error);
        }
      };
      this.#pending.push({ index, settle, reject });
      this.#link.ringCommands();
    });
  }

  /** @internal */
  takeIova(lengthBytes: number): bigint {
    const iova = this.#nextIova;
    this.#nextIova += ((BigInt(lengthBytes) + PAGE - 1n) / PAGE + 1n) * PAGE; // One unmapped page after every region.
    return iova;
  }

  /** @internal */
  track(object: QueuePair | CompletionQueue | SharedReceiveQueue): void {
    if (object.kind === 'QP') this.#qps.set(object.qpn, object);
    else if (object.kind === 'CQ') this.#cqs.set(object.handle, object);
    else this.#srqs.set(object.handle, object);
  }

  /** @internal */
  untrack(object: QueuePair | CompletionQueue | SharedReceiveQueue): void {
    if (object.kind === 'QP') this.#qps.delete(object.qpn);
    else if (object.kind === 'CQ') this.#cqs.delete(object.handle);
    else this.#srqs.delete(object.handle);
  }

  /** @internal */
  qpOf(qpn: number): QueuePair | undefined {
    return this.#qps.get(qpn);
  }

  #onInterrupt(): void {
    while (this.#link.events.take(this.#event)) {
      const { type, id } = this.#event;
      if (type === EVENT_COMMAND_DONE) this.#settleCommands();
      else if (!this.#isOwn(type, id)) this.onForeignEvent(type, id);
      else if (type === EVENT_COMPLETION) this.#cqs.get(id)?.onCompletionEvent();
      else if (type === EVENT_QP_SETTLED) this.#qps.get(id)?.onSettled();
      else this.#emit(type, id);
    }
    if (!this.#link.events.takeLost()) return;
    this.#settleCommands();
    for (const cq of this.#cqs.values()) cq.onCompletionEvent();
    for (const qp of this.#qps.values()) qp.onSettled();
    this.onForeignEvent(0, 0);
  }

  #isOwn(type: number, id: number): boolean {
    if (type === EVENT_COMPLETION || type === EVENT_CQ_ERR) return this.#cqs.has(id);
    return type === EVENT_SRQ_LIMIT_REACHED ? this.#srqs.has(id) : this.#qps.has(id);
  }

  #onFailure(cause: RoceError): void {
    this.#failure = cause;
    for (const { reject } of this.#pending.splice(0)) reject(cause);
    for (const wake of this.#waitingForRoom.splice(0)) wake();
    for (const cq of this.#cqs.values()) cq.onFailure(cause);
    for (const qp of this.#qps.values()) {
      qp.onFatal();
      this.events.emit('QP_FATAL', qp);
    }
    this.events.emit('DEVICE_FATAL', cause);
  }

  #settleCommands(): void {
    const done = this.#link.commands.consumer;
    while (this.#pending.length > 0 && ((done - this.#pending[0].index) | 0) > 0) this.#pending.shift()!.settle();
    for (const wake of this.#waitingForRoom.splice(0)) wake();
  }

  #emit(type: number, id: number): void {
    if (type === EVENT_CQ_ERR) {
      const cq = this.#cqs.get(id);
      if (cq === undefined) return;
      cq.onFailure(overrunOf(cq));
      this.events.emit('CQ_ERR', cq);
      return;
    }
    if (type === EVENT_SRQ_LIMIT_REACHED) {
      const srq = this.#srqs.get(id);
      if (srq !== undefined) this.events.emit('SRQ_LIMIT_REACHED', srq);
      return;
    }
    const qp = this.#qps.get(id);
    if (type === EVENT_CNP_SUSPICIOUS) {
      if (qp?.remote !== undefined) this.events.emit('CNP_SUSPICIOUS', qp, qp.remote);
      return;
    }
    const name = QP_EVENTS.get(type);
    if (qp === undefined || name === undefined) return;
    if (name === 'QP_FATAL') qp.onFatal();
    this.events.emit(name, qp);
  }

  /** Where the telemetry of this device is served; undefined if it was opened without telemetry. */
  get telemetry():
    | {
        /** Path of the control socket. */
        readonly socketPath: string;
        /** Where metrics are served, if `http` was set. */
        readonly httpUrl: string | undefined;
      }
    | undefined {
    return this.#server;
  }

  /** The device closes the server with itself. @internal */
  serveTelemetry(server: EndpointServer): void {
    this.#server = server;
  }

  protected override async release(): Promise<void> {
    await this.#server?.close();
    await this.#link.close();
    this.grants?.close();
    this.#released = true;
  }
}

function overrunOf({ depth }: CompletionQueue): RoceError {
  return new RoceError(
    'ERR_ROCE_LIMIT',
    `the completion queue overran its ${depth} elements: completions are lost, and its queue pairs have stopped`,
    'make it as deep as all work requests that may complete into it',
  );
}
