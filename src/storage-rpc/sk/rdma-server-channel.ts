/**
 * The server's end of sK-RDMA: READs the data of writes, WRITEs the data of reads, and answers by SEND_WITH_INV after
 * the WRITE on the same queue pair, so that data arrives first. Its own memory is registered for local use only.
 */

import { RoceError } from '../../core/errors.js';
import { Permits } from '../../core/permits.js';
import { Access } from '../../verbs/access.js';
import type { WorkCompletion } from '../../verbs/completion-queue.js';
import type { MemoryRegion } from '../../verbs/memory-region.js';
import type { QueuePair } from '../../verbs/queue-pair.js';
import type { SendWorkRequest } from '../../verbs/send-work-request.js';
import type { FairClient, FairQueue } from '../fair/fair-queue.js';
import { serveCompletions } from '../link/completions.js';
import { type BufferLease, type BufferPool, pieceBytes } from '../pool/buffer-pool.js';
import type { DataBuffer, SkIncoming, SkServerChannel } from './channel.js';
import { SK_RECEIVES, type SkRdmaParts } from './rdma-parts.js';
import {
  REQUEST_BYTES,
  REQUEST_MESSAGE_BYTES_MAX,
  readRequest,
  requestInlineBytes,
  requestListBytes,
  type SkRequest,
} from './request.js';
import { encodeMessage, type SkResponse } from './response.js';

export interface SkServerShare {
  readonly pool: BufferPool<MemoryRegion>;
  readonly memory: FairQueue;
  readonly pulls: Permits;
}

/** READs and atomics a queue pair has outstanding: what the exchange negotiates. */
const ORD = 16;

type NumberedRequest = SendWorkRequest & { wrId: number };

const NOTHING = () => {};

interface Post {
  readonly request: NumberedRequest;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

export class RdmaServerChannel implements SkServerChannel {
  readonly transport = 'rdma';
  onRequest: (incoming: SkIncoming) => void = () => {};
  onFailure: (error: Error) => void = () => {};
  readonly counters = { malformed: 0 };
  readonly #parts: SkRdmaParts;
  readonly #qp: QueuePair;
  readonly #share: SkServerShare;
  readonly #memory: FairClient;
  readonly #receives: MemoryRegion;
  readonly #reads = new Permits(ORD);
  readonly #posted = new Map<number, Post>();
  /** In order: a response must not overtake its data. */
  readonly #waitingForRoom: Post[] = [];
  #nextWrId = 0;
  #failure: Error | undefined;
  #closing: Promise<void> | undefined;

  private constructor(parts: SkRdmaParts, share: SkServerShare, receives: MemoryRegion) {
    this.#parts = parts;
    this.#qp = parts.qp;
    this.#share = share;
    this.#memory = share.memory.join();
    this.#receives = receives;
    serveCompletions(
      parts.sendCq,
      (wc) => this.#onDone(Number(wc.wrId)),
      (error) => this.fail(error),
    );
    serveCompletions(
      parts.recvCq,
      (wc) => this.#onReceive(wc),
      (error) => this.fail(error),
    );
  }

  static async over(parts: SkRdmaParts, share: SkServerShare): Promise<RdmaServerChannel> {
    const receives = await parts.pd.regMr(SK_RECEIVES * REQUEST_MESSAGE_BYTES_MAX, Access.LOCAL_WRITE);
    const channel = new RdmaServerChannel(parts, share, receives);
    for (let i = 0; i < SK_RECEIVES; i++) channel.#postReceive(i);
    return channel;
  }

  buffer(bytes: number): BufferLease<MemoryRegion> | Promise<BufferLease<MemoryRegion>> {
    const piece = pieceBytes(bytes);
    const release = () => this.#memory.give(piece);
    const granted = this.#memory.take(piece);
    const lease = granted === undefined ? this.#share.pool.acquireNow(bytes, release) : undefined;
    return lease ?? this.#bufferLater(bytes, granted, release);
  }

  async #bufferLater(
    bytes: number,
    granted: Promise<void> | undefined,
    release: () => void,
  ): Promise<BufferLease<MemoryRegion>> {
    await granted;
    try {
      return await this.#share.pool.acquire(bytes, release);
    } catch (error) {
      release();
      throw error;
    }
  }

  async pull(request: SkRequest, into: DataBuffer, from: number, length: number): Promise<void> {
    const { slab, offset } = into as BufferLease<MemoryRegion>;
    const { addr, rkey } = request.descriptor;
    await this.#reads.take(1);
    try {
      await this.#share.pulls.take(length);
      try {
        const remoteAddr = addr + BigInt(from);
        await this.#post({ opcode: 'RDMA_READ', wrId: 0, sges: [slab.sge(offset + from, length)], remoteAddr, rkey });
      } finally {
        this.#share.pulls.give(length);
      }
    } finally {
      this.#reads.give(1);
    }
  }

  move(request: SkRequest, data: DataBuffer): void {
    const { slab, offset, length } = data as BufferLease<MemoryRegion>;
    const { addr: remoteAddr, rkey } = request.descriptor;
    const sges = [slab.sge(offset, length)];
    // Unsignaled: the completion of the reply behind it covers it and its failure.
    const write: NumberedRequest = { opcode: 'RDMA_WRITE', wrId: 0, sges, remoteAddr, rkey, signaled: false };
    this.#postSoon({ request: write, resolve: NOTHING, reject: NOTHING });
  }

  reply(request: SkRequest, response: SkResponse, list: Uint8Array, data: DataBuffer | undefined): Promise<void> {
    const { rkey, length } = request.descriptor;
    const inline = encodeMessage(response, list, request.op === 'READ' ? undefined : data?.bytes);
    const send: NumberedRequest =
      length > 0
        ? { opcode: 'SEND_WITH_INV', wrId: 0, inline, invalidateRkey: rkey }
        : { opcode: 'SEND', wrId: 0, inline };
    return this.#post(send).catch(NOTHING);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /** Work in flight is only given up once the queue pair is gone: until then a READ may still write to its memory. */
  async #close(): Promise<void> {
    this.#failure ??= new RoceError('ERR_ROCE_CLOSED', 'the connection is closed');
    await this.#qp.close();
    for (const { reject } of this.#posted.values()) reject(this.#failure);
    this.#posted.clear();
    for (const { reject } of this.#waitingForRoom.splice(0)) reject(this.#failure);
    this.#memory.leave();
    await this.#receives.close();
    await this.#parts.sendCq.close();
    await this.#parts.recvCq.close();
    this.#parts.onClosed?.();
  }

  /** Rejects when the queue pair is gone, not before. */
  #post(request: NumberedRequest): Promise<void> {
    return new Promise((resolve, reject) => this.#postSoon({ request, resolve, reject }));
  }

  #postSoon(post: Post): void {
    const failure = this.#failure;
    if (failure !== undefined) {
      void this.close().then(() => post.reject(failure), post.reject);
      return;
    }
    this.#waitingForRoom.push(post);
    this.#postWaiting();
  }

  #postWaiting(): void {
    while (this.#waitingForRoom.length > 0 && this.#failure === undefined && this.#qp.sendRoom > 0) {
      const post = this.#waitingForRoom.shift()!;
      const { request } = post;
      request.wrId = this.#nextWrId;
      this.#nextWrId = (this.#nextWrId + 1) >>> 0;
      if (request.signaled !== false) this.#posted.set(request.wrId, post);
      this.#qp.postSend(request);
    }
  }

  #onDone(wrId: number): void {
    this.#posted.get(wrId)?.resolve();
    this.#posted.delete(wrId);
    this.#postWaiting();
  }

  #postReceive(place: number): void {
    if (this.#failure !== undefined) return;
    const sges = [this.#receives.sge(place * REQUEST_MESSAGE_BYTES_MAX, REQUEST_MESSAGE_BYTES_MAX)];
    this.#qp.postRecv({ wrId: place, sges });
  }

  #onReceive(wc: WorkCompletion): void {
    if (this.#failure !== undefined) return;
    const place = Number(wc.wrId);
    const begin = place * REQUEST_MESSAGE_BYTES_MAX;
    const message = this.#receives.bytes.subarray(begin, begin + wc.byteLen);
    const request = readRequest(message);
    if (typeof request === 'string') {
      this.#refuse(request);
      return;
    }
    const dataBegin = REQUEST_BYTES + requestListBytes(request);
    const inlineBytes = requestInlineBytes(request);
    if (message.length !== dataBegin + inlineBytes) {
      this.#refuse('bad_length');
      return;
    }
    if (!descriptorFits(request, inlineBytes)) {
      this.#refuse('bad_descriptor');
      return;
    }
    let held = true;
    this.onRequest({
      request,
      list: message.subarray(REQUEST_BYTES, dataBegin),
      inline: inlineBytes > 0 ? message.subarray(dataBegin) : undefined,
      release: () => {
        if (held) this.#postReceive(place);
        held = false;
      },
    });
  }

  #refuse(why: string): void {
    this.counters.malformed++;
    this.fail(new RoceError('ERR_ROCE_MISMATCH', `a request is malformed: ${why}`));
  }

  fail(error: Error): void {
    if (this.#failure !== undefined) return;
    this.#failure = error;
    this.onFailure(error);
  }
}

function descriptorFits({ op, length, descriptor }: SkRequest, inlineBytes: number): boolean {
  const moves = op === 'READ' || (op === 'WRITE' && inlineBytes === 0);
  return descriptor.length === (moves ? length : 0);
}
