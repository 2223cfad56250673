/**
 * The target's end of NVMe over RDMA: READs the data of writes from the host, WRITEs the data of reads, then answers by
 * SEND or SEND_WITH_INV on the same queue pair, so data precedes the answer. Its own memory is registered for local use
 * only.
 */

import { Permits, RoceError } from 'rocev2/internal/core';
import {
  type BufferLease,
  type DataBuffer,
  type FairPool,
  ServerSends,
  serveCompletions,
} from 'rocev2/internal/storage-rpc';
import {
  Access,
  type CompletionQueue,
  type MemoryRegion,
  type ProtectionDomain,
  type QueuePair,
  type WorkCompletion,
} from 'rocev2/internal/verbs';
import { CQE_BYTES, encodeCompletion, NvmeCommand, SQE_BYTES } from '../capsule.js';
import { IN_CAPSULE_BYTES } from '../identify.js';
import type { DataPlace } from '../sgl.js';
import type { IncomingCapsule, TargetConnection, TargetReply } from '../target-connection.js';
import { type MemoryUser, memoryUse } from '../target-memory.js';

export interface RdmaTargetShare {
  readonly memory: FairPool<MemoryRegion>;
  readonly pulls: Permits;
}

export interface RdmaTargetInit {
  readonly pd: ProtectionDomain;
  readonly remote: string;
  readonly qid: number;
  readonly depth: number;
  readonly reads: number;
  readonly share: RdmaTargetShare;
  /** Called when its memory is free. */
  readonly onClosed?: () => void;
}

/** READ, WRITE and SEND for every command, of which the last may still wait to be polled. */
const SENDS_OF_COMMAND = 4;
const READS_MAX = 16;

/** It receives from the start, and answers once `start` has been called. */
export class RdmaTargetConnection implements TargetConnection, MemoryUser {
  readonly transport = 'rdma';
  readonly remote: string;
  readonly qid: number;
  readonly depthMax: number;
  readonly external = 'keyed';
  onCapsule: (capsule: IncomingCapsule) => void = () => {};
  onFailure: (error: Error) => void = () => {};
  readonly qp: QueuePair;
  readonly #cqs: readonly [send: CompletionQueue, receive: CompletionQueue];
  readonly #receives: MemoryRegion;
  readonly #memory: ReturnType<FairPool<MemoryRegion>['join']>;
  readonly #capsuleBytes: number;
  readonly #onClosed: (() => void) | undefined;
  readonly #sends: ServerSends;
  #disconnect: () => void = () => {};
  #closing: Promise<void> | undefined;

  private constructor(
    { pd, remote, qid, depth, reads, share, onClosed }: RdmaTargetInit,
    qp: QueuePair,
    cqs: readonly [CompletionQueue, CompletionQueue],
    receives: MemoryRegion,
  ) {
    this.remote = remote;
    this.qid = qid;
    this.depthMax = depth;
    this.qp = qp;
    this.#cqs = cqs;
    this.#receives = receives;
    this.#capsuleBytes = capsuleBytes(qid);
    this.#onClosed = onClosed;
    this.#sends = new ServerSends({
      qp,
      clock: pd.device.clock,
      reads: new Permits(Math.min(reads, READS_MAX)),
      pulls: share.pulls,
      close: () => this.close(),
    });
    this.#memory = share.memory.join(...memoryUse(this));
  }

  static async create(init: RdmaTargetInit): Promise<RdmaTargetConnection> {
    const { pd, qid, depth } = init;
    const made: Array<{ close(): Promise<void> }> = [];
    try {
      const maxSendWr = SENDS_OF_COMMAND * depth;
      const sendCq = await pd.device.createCq(maxSendWr);
      made.push(sendCq);
      const recvCq = await pd.device.createCq(depth);
      made.push(recvCq);
      const receives = await pd.regMr(depth * capsuleBytes(qid), Access.LOCAL_WRITE);
      made.push(receives);
      const qp = await pd.createQp({ sendCq, recvCq, maxSendWr, maxRecvWr: depth, maxInlineBytes: CQE_BYTES });
      made.push(qp);
      // No access for the host: it never reaches memory of the target.
      await qp.modify({ state: 'INIT', pkeyIndex: 0, port: 1, accessFlags: 0 });
      const connection = new RdmaTargetConnection(init, qp, [sendCq, recvCq], receives);
      for (let place = 0; place < depth; place++) connection.#postReceive(place);
      return connection;
    } catch (error) {
      for (const one of made.reverse()) await one.close().catch(() => {});
      throw error;
    }
  }

  start(disconnect: () => void): void {
    this.#sends.start();
    this.#disconnect = disconnect;
    serveCompletions(
      this.#cqs,
      (wrId) => this.#sends.onDone(wrId),
      (wc) => this.#onReceive(wc),
      (error) => this.fail(error),
    );
  }

  get stuckSinceNs(): number {
    return this.#sends.stuckSinceNs;
  }

  buffer(bytes: number): BufferLease<MemoryRegion> | Promise<BufferLease<MemoryRegion>> {
    return this.#memory.lease(bytes);
  }

  async pull(_: NvmeCommand, place: DataPlace, into: DataBuffer): Promise<void> {
    if (place.kind !== 'keyed') return;
    const { slab, offset } = into as BufferLease<MemoryRegion>;
    const { addr: remoteAddr, rkey, length } = place;
    const sges = [slab.sge(offset, length)];
    await this.#sends.read({ opcode: 'RDMA_READ', wrId: 0, sges, remoteAddr, rkey }, length);
  }

  async reply({ place, completion, data }: TargetReply): Promise<void> {
    const inline = encodeCompletion(completion);
    if (data !== undefined && place.kind === 'keyed') {
      const { slab, offset } = data as BufferLease<MemoryRegion>;
      const { addr: remoteAddr, rkey, length } = place;
      const sges = [slab.sge(offset, length)];
      this.#sends.postUnsignaled({ opcode: 'RDMA_WRITE', wrId: 0, sges, remoteAddr, rkey, signaled: false });
    }
    const send =
      place.kind === 'keyed' && place.invalidate
        ? ({ opcode: 'SEND_WITH_INV', invalidateRkey: place.rkey } as const)
        : ({ opcode: 'SEND' } as const);
    await this.#sends.post({ ...send, wrId: 0, inline, solicited: true }).catch(() => {});
  }

  fail(error: Error): void {
    if (this.#sends.failure !== undefined) return;
    this.#sends.failure = error;
    this.#memory.leave();
    this.onFailure(error);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.fail(new RoceError('ERR_ROCE_CLOSED', 'the connection is closed'));
    this.#disconnect();
    await this.qp.close();
    this.#sends.giveUp();
    await this.#receives.close();
    for (const cq of this.#cqs) await cq.close();
    this.#onClosed?.();
  }

  #postReceive(place: number): void {
    if (this.#sends.failure !== undefined) return;
    const sges = [this.#receives.sge(place * this.#capsuleBytes, this.#capsuleBytes)];
    this.qp.postRecv({ wrId: place, sges });
  }

  #onReceive(wc: WorkCompletion): void {
    if (this.#sends.failure !== undefined) return;
    const place = Number(wc.wrId);
    if (wc.byteLen < SQE_BYTES) {
      this.fail(new RoceError('ERR_ROCE_MISMATCH', `a command capsule has ${wc.byteLen} bytes`));
      return;
    }
    const begin = place * this.#capsuleBytes;
    const capsule = this.#receives.bytes.subarray(begin, begin + wc.byteLen);
    let held = true;
    this.onCapsule({
      command: new NvmeCommand(Buffer.from(capsule.subarray(0, SQE_BYTES))),
      data: capsule.subarray(SQE_BYTES),
      isDamaged: false,
      release: () => {
        if (held) this.#postReceive(place);
        held = false;
      },
    });
  }
}

function capsuleBytes(qid: number): number {
  return qid === 0 ? SQE_BYTES : SQE_BYTES + IN_CAPSULE_BYTES;
}
