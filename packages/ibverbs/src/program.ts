/** One open context of a program: its commands, its objects, and what is left of them when it ends. */

import type { Socket } from 'node:net';
import { RoceError } from 'rocev2/internal/core';
import { nowNs, SYSTEM_CLOCK } from 'rocev2/internal/driver';
import {
  EVENT_COMM_EST,
  EVENT_COMPLETION,
  EVENT_CQ_ERR,
  EVENT_QP_FATAL,
  EVENT_QP_LAST_WQE_REACHED,
  EVENT_QP_SETTLED,
  EVENT_SQ_DRAINED,
  EVENT_SRQ_LIMIT_REACHED,
} from 'rocev2/internal/memory';
import { ROCE_UDP_PORT } from 'rocev2/internal/port';
import type { AddressSpace } from './address-space.js';
import { BatchedMemory } from './batched-memory.js';
import { CompletionSignal, takeRequest } from './completion-signal.js';
import { DoorbellWatcher } from './doorbell-watcher.js';
import * as op from './messages.js';
import { openMemory } from './program-memory.js';
import { type Kind, type OwnObject, ProgramObjects, type SharedNic } from './program-objects.js';
import { openRing, type SharedSegment } from './shared-ring.js';

const OBJECTS_MAX = 1 << 17;
const SETTLE_MAX_NS = 1e9;
/** Word of a send queue's header that says that the queue pair has failed by itself. */
const WORD_FATAL = 7;

/** Attribute bits of libibverbs that the NIC knows; the path migration state is accepted, as it never changes. */
const KNOWN_ATTRIBUTES = 0x1f_ffff;
const ALTERNATE_PATH = 1 << 14;
const PATH_MIG_STATE = 1 << 18;

/**
 * Arguments of a message that are attributes of a queue pair, in commands and answers; native/objects.c has the same.
 */
const QP_ARGUMENTS = {
  state: 2,
  accessFlags: 3,
  qkey: 4,
  dscp: 7,
  pathMtu: 8,
  timeout: 9,
  retryCnt: 10,
  rnrRetry: 11,
  rqPsn: 12,
  maxRdAtomic: 13,
  minRnrTimer: 14,
  sqPsn: 15,
  maxDestRdAtomic: 16,
  destQpn: 17,
} as const;
const REMOTE_GID = 5;
const SQ_DRAINING = 21;
type QpArgument = keyof typeof QP_ARGUMENTS;
const QP_ARGUMENT_NAMES = Object.keys(QP_ARGUMENTS) as QpArgument[];

/** Events as ibv_event_type numbers them. */
const EVENT_NUMBERS: ReadonlyMap<number, number> = new Map([
  [EVENT_CQ_ERR, 0],
  [EVENT_QP_FATAL, 1],
  [EVENT_COMM_EST, 4],
  [EVENT_SQ_DRAINED, 5],
  [EVENT_SRQ_LIMIT_REACHED, 15],
  [EVENT_QP_LAST_WQE_REACHED, 16],
]);

const CREATES: ReadonlySet<number> = new Set([
  op.OP_ALLOC_PD,
  op.OP_REG_MR,
  op.OP_ALLOC_MW,
  op.OP_CREATE_CQ,
  op.OP_CREATE_SRQ,
  op.OP_CREATE_QP,
  op.OP_CREATE_AH,
]);

const DESTROYS: ReadonlyMap<number, Kind> = new Map([
  [op.OP_DEALLOC_PD, 'pd'],
  [op.OP_DEREG_MR, 'mr'],
  [op.OP_DEALLOC_MW, 'mw'],
  [op.OP_DESTROY_CQ, 'cq'],
  [op.OP_DESTROY_SRQ, 'srq'],
  [op.OP_DESTROY_AH, 'ah'],
  [op.OP_DESTROY_QP, 'qp'],
]);

export class Program {
  readonly pid: number;
  readonly #token: number;
  readonly #nic: SharedNic;
  readonly #objects: ProgramObjects;
  readonly #settled = new Map<number, () => void>();
  readonly #channels = new Map<number, Socket>();
  readonly #onGone: () => void;
  #events: Socket | undefined;
  #memory: { readonly id: number; readonly space: AddressSpace } | undefined;
  #doorbells:
    | { readonly watcher: DoorbellWatcher; readonly signal: CompletionSignal; readonly segment: SharedSegment }
    | undefined;
  #work: Promise<void> = Promise.resolve();
  #ended = false;

  constructor(nic: SharedNic, pid: number, token: number, onGone: () => void) {
    this.#nic = nic;
    this.pid = pid;
    this.#token = token;
    this.#onGone = onGone;
    this.#objects = new ProgramObjects(nic, pid);
  }

  /** Objects that it has. */
  get objects(): number {
    return this.#objects.count;
  }

  sendEventsTo(socket: Socket): void {
    this.#events = socket;
  }

  addChannel(number: number, socket: Socket): void {
    this.#channels.set(number, socket);
    socket.once('close', () => this.#channels.delete(number));
  }

  wake(): void {
    this.#doorbells?.watcher.wake();
  }

  /** Executes one command after those before it, and puts the answer into the message. Never rejects. */
  execute(message: op.NicMessage, answered: () => void): void {
    this.#work = this.#work.then(async () => {
      if (this.#ended) return;
      try {
        await this.#execute(message);
        message.answer(0);
      } catch (error) {
        message.answer(op.errnoOf(error));
      }
      answered();
    });
  }

  /** True if the event is about an object of this program. */
  onEvent(type: number, id: number): boolean {
    if (type === EVENT_COMPLETION) {
      const queue = this.#objects.of('cq').get(id);
      if (queue === undefined) return false;
      this.#notify(queue);
      return true;
    }
    const kind = type === EVENT_CQ_ERR ? 'cq' : type === EVENT_SRQ_LIMIT_REACHED ? 'srq' : 'qp';
    const object = this.#objects.of(kind).get(id);
    if (object === undefined) return false;
    if (type === EVENT_QP_SETTLED) this.#settled.get(id)?.();
    if (type === EVENT_QP_FATAL) {
      Atomics.store(new Int32Array(object.segments[0].memory, 0, WORD_FATAL + 1), WORD_FATAL, 1);
      this.#nic.engine.ringDoorbell(id); // Receives that were posted in between.
    }
    const number = EVENT_NUMBERS.get(type);
    if (number === undefined || this.#events === undefined) return true;
    const notice = Buffer.alloc(8);
    notice.writeUInt32LE(number, 0);
    notice.writeUInt32LE(id, 4);
    this.#events.write(notice);
    return true;
  }

  /** Some events were lost: every queue may have completions. */
  onLostEvents(): void {
    for (const queue of this.#objects.of('cq').values()) this.#notify(queue);
    for (const settled of this.#settled.values()) settled();
  }

  /** The program has ended: frees everything that it has. */
  async end(): Promise<void> {
    if (this.#ended) return;
    this.#ended = true;
    await this.#work;
    await Promise.all([...this.#objects.of('qp').keys()].map((qpn) => this.#settle(qpn)));
    await this.#objects.freeAll();
    this.#doorbells?.watcher.close();
    this.#doorbells?.segment.close();
    if (this.#memory !== undefined) {
      this.#nic.engine.detachForeign(this.#memory.id);
      this.#memory.space.close();
    }
    for (const channel of this.#channels.values()) channel.destroy();
    this.#events?.destroy();
    this.#onGone();
  }

  #notify({ cookie, channel, segments }: OwnObject): void {
    this.#doorbells?.signal.raise();
    this.wake(); // Most programs answer a completion by a request.
    if (!takeRequest(segments[0].memory) || channel === undefined || cookie === undefined) return;
    const notice = Buffer.alloc(8);
    notice.writeBigUInt64LE(cookie);
    channel.write(notice);
  }

  async #execute(message: op.NicMessage): Promise<void> {
    const { device } = this.#nic;
    const first = message.number(0);
    if (CREATES.has(message.operation) && this.objects >= OBJECTS_MAX) {
      throw new RoceError('ERR_ROCE_LIMIT', `process ${this.pid} has ${OBJECTS_MAX} objects, which is the limit`);
    }
    const destroyed = DESTROYS.get(message.operation);
    if (destroyed !== undefined) {
      if (destroyed === 'qp') await this.#settle(this.#objects.own('qp', first));
      return this.#objects.free(destroyed, first);
    }
    switch (message.operation) {
      case op.OP_HELLO:
        return this.#takeDoorbells(message);
      case op.OP_ALLOC_PD: {
        const { pd } = await device.command('allocPd', {});
        return this.#objects.add('pd', pd, message);
      }
      case op.OP_REG_MR:
        return this.#registerMemory(message);
      case op.OP_REREG_MR:
        await device.command('reregMr', { mr: this.#objects.own('mr', first), ...this.#region(message, 1) });
        return;
      case op.OP_ALLOC_MW: {
        const { mw, rkey } = await device.command('allocMw', {
          pd: this.#objects.own('pd', first),
          type: message.number(1),
        });
        message.set(1, rkey);
        return this.#objects.add('mw', mw, message);
      }
      case op.OP_CREATE_CQ:
        return this.#createCq(message);
      case op.OP_CREATE_SRQ: {
        const pd = this.#objects.own('pd', first);
        const rings = this.#objects.openRings([message.number(1), message.number(2)]);
        return this.#objects.create('srq', rings, message, async ([memory]) => {
          return (await device.command('createSrq', { pd, memory })).srq;
        });
      }
      case op.OP_MODIFY_SRQ:
        await device.command('modifySrq', { srq: this.#objects.own('srq', first), limit: message.number(1) });
        return;
      case op.OP_QUERY_SRQ:
        message.set(1, (await device.command('querySrq', { srq: this.#objects.own('srq', first) })).limit);
        return;
      case op.OP_RESIZE_SRQ:
        return this.#objects.resize('srq', message, (memory) => device.command('resizeSrq', { srq: first, memory }));
      case op.OP_RESIZE_CQ:
        return this.#objects.resize('cq', message, (memory) => device.command('resizeCq', { cq: first, memory }));
      case op.OP_CREATE_QP:
        return this.#createQp(message);
      case op.OP_MODIFY_QP:
        return this.#modifyQp(message);
      case op.OP_QUERY_QP:
        return this.#queryQp(message);
      case op.OP_CREATE_AH: {
        const to = { remoteGid: message.gid(1), remoteUdpPort: ROCE_UDP_PORT, dscp: message.number(3) };
        const { ah } = await device.command('createAh', { pd: this.#objects.own('pd', first), ...to });
        return this.#objects.add('ah', ah, message);
      }
      default:
        throw new RoceError('ERR_ROCE_UNSUPPORTED', `operation ${message.operation} is unknown`);
    }
  }

  #takeDoorbells(message: op.NicMessage): void {
    if (this.#doorbells !== undefined) throw new RoceError('ERR_ROCE_INVALID_STATE', 'the doorbells are known already');
    const { engine, ports, descriptors } = this.#nic;
    const space = openMemory(this.pid, descriptors.take(this.#token), message.number(2), this.#token);
    let segment: SharedSegment | undefined;
    try {
      segment = openRing(ports, this.pid, [message.number(0), message.number(1)]);
      const qp = this.#objects.of('qp');
      const one = (qpn: number) => {
        if (qp.has(qpn)) engine.ringDoorbell(qpn);
      };
      const all = () => {
        for (const qpn of qp.keys()) engine.ringDoorbell(qpn);
      };
      const watcher = new DoorbellWatcher(segment.memory, { one, all, drained: () => void engine.poll() });
      this.#doorbells = { watcher, signal: new CompletionSignal(segment.memory), segment };
      this.#memory = { id: engine.attachForeign(new BatchedMemory(space)), space };
    } catch (error) {
      segment?.close();
      space.close();
      throw error;
    }
  }

  async #registerMemory(message: op.NicMessage): Promise<void> {
    const { mr, lkey } = await this.#nic.device.command('regMr', this.#region(message, 0));
    message.set(1, lkey);
    this.#objects.add('mr', mr, message);
  }

  /** The arguments from `first` on: protection domain, address, length, IOVA, access. */
  #region(message: op.NicMessage, first: number) {
    const [pd, offsetBytes, lengthBytes] = [0, 1, 2].map((i) => message.number(first + i));
    const [iova, access] = [message.long(first + 3), message.number(first + 4)];
    const memory = this.#memory?.id;
    if (memory === undefined) throw new RoceError('ERR_ROCE_INVALID_STATE', 'the doorbells are not known yet');
    return { pd: this.#objects.own('pd', pd), memory, offsetBytes, lengthBytes, iova, access };
  }

  async #createCq(message: op.NicMessage): Promise<void> {
    const rings = this.#objects.openRings([message.number(0), message.number(1)]);
    const cookie = message.long(2);
    const channel = this.#channels.get(message.number(3));
    const more = { cookie, channel };
    return this.#objects.create(
      'cq',
      rings,
      message,
      async ([memory]) => (await this.#nic.device.command('createCq', { memory })).cq,
      more,
    );
  }

  async #createQp(message: op.NicMessage): Promise<void> {
    const [pd, type, sendCq, recvCq, srq] = [0, 1, 2, 3, 4].map((i) => message.number(i));
    this.#objects.own('pd', pd);
    this.#objects.own('cq', sendCq);
    this.#objects.own('cq', recvCq);
    if (srq !== 0) this.#objects.own('srq', srq);
    if (type < 2 || type > 4) throw new RoceError('ERR_ROCE_UNSUPPORTED', `queue pairs of type ${type} are not known`);
    const rings = this.#objects.openRings(
      [message.number(5), message.number(6)],
      [message.number(7), message.number(8)],
    );
    const signalAll = message.number(9);
    return this.#objects.create('qp', rings, message, async ([sqMemory, rqMemory]) => {
      const args = { pd, type, sendCq, recvCq, srq, sqMemory, rqMemory, signalAll };
      return (await this.#nic.device.command('createQp', args)).qpn;
    });
  }

  async #modifyQp(message: op.NicMessage): Promise<void> {
    const given = message.number(1);
    if ((given & ALTERNATE_PATH) !== 0) {
      throw new RoceError('ERR_ROCE_UNSUPPORTED', 'alternate paths are not supported');
    }
    const values = QP_ARGUMENT_NAMES.map((name) => [name, message.number(QP_ARGUMENTS[name])]);
    await this.#nic.device.command('modifyQp', {
      ...(Object.fromEntries(values) as Record<QpArgument, number>),
      qpn: this.#objects.own('qp', message.number(0)),
      mask: given & KNOWN_ATTRIBUTES & ~PATH_MIG_STATE,
      remoteGid: message.gid(REMOTE_GID),
      remoteUdpPort: ROCE_UDP_PORT,
      enSqdAsyncNotify: message.number(18),
      port: message.number(19),
      curState: message.number(20),
      pkeyIndex: 0,
      ecn: 0,
      totalTimeout: 0,
      recovery: '',
      recoveryParameters: new Float64Array(),
      inflightPackets: 0,
      remoteSourcePort: 0,
      rateControl: '',
      rateParameters: new Float64Array(),
    });
  }

  async #queryQp(message: op.NicMessage): Promise<void> {
    const info = await this.#nic.device.command('queryQp', { qpn: this.#objects.own('qp', message.number(0)) });
    for (const name of QP_ARGUMENT_NAMES) message.set(QP_ARGUMENTS[name], info[name]);
    message.setGid(REMOTE_GID, info.remoteGid);
    message.set(SQ_DRAINING, info.sqDraining);
  }

  /** Resolves when the answers that a queue pair owes have left, or after {@link SETTLE_MAX_NS}. */
  async #settle(qpn: number): Promise<void> {
    const deadlineNs = nowNs() + SETTLE_MAX_NS;
    for (;;) {
      const { owed } = await this.#nic.device.command('settleQp', { qpn });
      if (owed !== 1 || nowNs() >= deadlineNs) return;
      await new Promise<void>((resolve) => {
        const cancel = SYSTEM_CLOCK.wakeAt(deadlineNs, resolve);
        this.#settled.set(qpn, () => {
          cancel();
          resolve();
        });
      });
      this.#settled.delete(qpn);
    }
  }
}
