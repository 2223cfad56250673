/**
 * The host's end of NVMe over RDMA. For a command with data outside its capsule, REG_MR maps memory and SEND carries
 * the command with its key; the target READs or WRITEs and answers by SEND_WITH_INV, or by SEND followed by our
 * LOCAL_INV. Safety rules: an answer must invalidate exactly its command's key, or none; a command ends when its SEND
 * has completed, its answer is there and its key is invalid; after a failure the queue pair and protection domain are
 * closed before memory is released; keys change with every mapping (mappable-slab.ts).
 */

import { type Clock, RoceError } from 'rocev2/internal/core';
import { BufferPool, MappableSlab, Mapping, serveCompletions } from 'rocev2/internal/storage-rpc';
import {
  Access,
  type CompletionQueue,
  type MemoryRegion,
  type ProtectionDomain,
  type QueuePair,
  type WorkCompletion,
} from 'rocev2/internal/verbs';
import { type Completion, CQE_BYTES, decodeCompletion, SQE_BYTES } from '../capsule.js';
import { IN_CAPSULE_BYTES } from '../identify.js';
import { writeSgl } from '../sgl.js';
import type { HostCommand, HostConnection } from './host-connection.js';

export interface RdmaHostInit {
  readonly pd: ProtectionDomain;
  readonly clock: Clock;
  readonly entries: number;
  /** Bytes of memory for data in flight, at most. */
  readonly poolBytesMax: number;
}

interface Pending {
  readonly command: HostCommand;
  mapping: Mapping | undefined;
  sent: boolean;
  completion: Completion | undefined;
}

/** wr_id of a LOCAL_INV: that of the SEND, and this. */
const INVALIDATION = 0x1_0000;
/** REG_MR, SEND and LOCAL_INV for every command. */
const SENDS_OF_COMMAND = 3;
const CAPSULE_BYTES = SQE_BYTES + IN_CAPSULE_BYTES;

export class RdmaHostConnection implements HostConnection {
  readonly transport = 'rdma';
  inCapsuleBytes = 0;
  onCompletion: (completion: Completion) => void = () => {};
  onFailure: (error: Error) => void = () => {};
  readonly qp: QueuePair;
  disconnect: () => void = () => {};
  readonly #init: RdmaHostInit;
  readonly #cqs: readonly [send: CompletionQueue, receive: CompletionQueue];
  readonly #requests: MemoryRegion;
  readonly #receives: MemoryRegion;
  readonly #pool: BufferPool<MappableSlab>;
  readonly #pending = new Map<number, Pending>();
  readonly #maps = new Set<Promise<void>>();
  #failure: Error | undefined;
  #closing: Promise<void> | undefined;

  private constructor(
    init: RdmaHostInit,
    qp: QueuePair,
    cqs: readonly [CompletionQueue, CompletionQueue],
    regions: { readonly requests: MemoryRegion; readonly receives: MemoryRegion },
  ) {
    this.#init = init;
    this.qp = qp;
    this.#cqs = cqs;
    this.#requests = regions.requests;
    this.#receives = regions.receives;
    this.#pool = new BufferPool({
      allocate: (bytes) => MappableSlab.create(init.pd, bytes),
      clock: init.clock,
      bytesMax: init.poolBytesMax,
    });
    serveCompletions(
      cqs,
      (wrId) => this.#onSent(wrId),
      (wc) => this.#onReceive(wc),
      (error) => this.fail(error),
    );
  }

  /** All objects that were made close with the protection domain. */
  static async create(init: RdmaHostInit): Promise<RdmaHostConnection> {
    const { pd, entries } = init;
    const maxSendWr = SENDS_OF_COMMAND * entries;
    const sendCq = await pd.device.createCq(maxSendWr);
    const recvCq = await pd.device.createCq(entries);
    const qp = await pd.createQp({ sendCq, recvCq, maxSendWr, maxRecvWr: entries });
    await qp.modify({ state: 'INIT', pkeyIndex: 0, port: 1, accessFlags: Access.REMOTE_READ | Access.REMOTE_WRITE });
    const requests = await pd.regMr(entries * CAPSULE_BYTES, Access.LOCAL_WRITE);
    const receives = await pd.regMr(entries * CQE_BYTES, Access.LOCAL_WRITE);
    const connection = new RdmaHostConnection(init, qp, [sendCq, recvCq], { requests, receives });
    for (let place = 0; place < entries; place++) connection.#postReceive(place);
    return connection;
  }

  send(command: HostCommand): void {
    if (this.#failure !== undefined) return;
    const { sqe, out, into } = command;
    const id = sqe.readUInt16LE(2);
    const pending: Pending = { command, mapping: undefined, sent: false, completion: undefined };
    this.#pending.set(id, pending);
    const length = (out ?? into)?.length ?? 0;
    if (length === 0) {
      writeSgl(sqe, { kind: 'none', length: 0 }, 'keyed');
      this.#post(id, pending);
    } else if (out !== undefined && length <= Math.min(this.inCapsuleBytes, IN_CAPSULE_BYTES)) {
      writeSgl(sqe, { kind: 'capsule', offset: 0, length }, 'keyed');
      this.#post(id, pending, out);
    } else {
      const mapped = this.#map(pending, length).then(
        () => this.#post(id, pending),
        (error: Error) => this.fail(error),
      );
      this.#maps.add(mapped);
      void mapped.then(() => this.#maps.delete(mapped));
    }
  }

  fail(error: Error): void {
    if (this.#failure !== undefined) return;
    this.#failure = error;
    this.onFailure(error);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.fail(new RoceError('ERR_ROCE_CLOSED', 'the connection is closed'));
    this.disconnect();
    await this.qp.close();
    await this.#pool.close();
    await Promise.all(this.#maps);
    await this.#init.pd.close();
    for (const cq of this.#cqs) await cq.close();
  }

  /** Finds memory for the command; data to be written is copied there, so that the caller's memory is never exposed. */
  async #map(pending: Pending, length: number): Promise<void> {
    const { sqe, out } = pending.command;
    const lease = await this.#pool.acquire(length);
    const region = await lease.slab.take();
    if (out !== undefined) lease.bytes.set(out);
    const mapping = new Mapping(lease, region);
    pending.mapping = mapping;
    writeSgl(sqe, { kind: 'keyed', addr: mapping.addr, length, rkey: mapping.key, invalidate: true }, 'keyed');
  }

  #post(id: number, { command, mapping }: Pending, inCapsule?: Uint8Array): void {
    if (this.#failure !== undefined) return;
    const begin = id * CAPSULE_BYTES;
    const { sqe, out } = command;
    this.#requests.bytes.set(sqe, begin);
    if (inCapsule !== undefined) this.#requests.bytes.set(inCapsule, begin + SQE_BYTES);
    try {
      if (mapping !== undefined) {
        const access = out === undefined ? Access.LOCAL_WRITE | Access.REMOTE_WRITE : Access.REMOTE_READ;
        this.qp.postSend(mapping.registration(access));
      }
      const sges = [this.#requests.sge(begin, SQE_BYTES + (inCapsule?.length ?? 0))];
      this.qp.postSend({ opcode: 'SEND', wrId: id, sges });
    } catch (error) {
      this.fail(error as Error);
    }
  }

  #onSent(wrId: number): void {
    const id = wrId % INVALIDATION;
    const pending = this.#pending.get(id);
    if (pending === undefined) return;
    if (wrId >= INVALIDATION) pending.mapping!.open = false;
    else pending.sent = true;
    this.#finish(id, pending);
  }

  #postReceive(place: number): void {
    this.qp.postRecv({ wrId: place, sges: [this.#receives.sge(place * CQE_BYTES, CQE_BYTES)] });
  }

  #onReceive(wc: WorkCompletion): void {
    if (this.#failure !== undefined) return;
    if (wc.byteLen !== CQE_BYTES) {
      this.fail(new RoceError('ERR_ROCE_MISMATCH', `a response capsule has ${wc.byteLen} bytes`));
      return;
    }
    const begin = Number(wc.wrId) * CQE_BYTES;
    const completion = decodeCompletion(this.#receives.bytes.subarray(begin, begin + CQE_BYTES));
    this.#postReceive(Number(wc.wrId));
    const pending = this.#pending.get(completion.id);
    if (pending === undefined || pending.completion !== undefined) {
      const text = `there is an answer to command ${completion.id}, which was not sent`;
      this.fail(new RoceError('ERR_ROCE_MISMATCH', text));
      return;
    }
    pending.completion = completion;
    this.#checkInvalidation(completion.id, pending, wc.invalidatedRkey);
  }

  #checkInvalidation(id: number, pending: Pending, invalidated: number | undefined): void {
    const { mapping } = pending;
    if (invalidated !== undefined && invalidated !== mapping?.key) {
      this.fail(new RoceError('ERR_ROCE_MISMATCH', `the answer to command ${id} invalidated another key`));
      return;
    }
    if (mapping !== undefined && invalidated === undefined) {
      this.qp.postSend({ opcode: 'LOCAL_INV', wrId: INVALIDATION + id, invalidateRkey: mapping.key });
      return;
    }
    if (mapping !== undefined) mapping.open = false;
    this.#finish(id, pending);
  }

  #finish(id: number, { command, mapping, sent, completion }: Pending): void {
    if (this.#failure !== undefined || !sent || completion === undefined || mapping?.open === true) return;
    this.#pending.delete(id);
    if (mapping !== undefined) {
      if (command.into !== undefined && completion.status === 0) command.into.set(mapping.lease.bytes);
      mapping.release();
    }
    this.onCompletion(completion);
  }
}
