/**
 * The server's end of sK-RDMA: READs the data of writes, WRITEs the data of reads, and answers by SEND_WITH_INV after
 * the WRITE on the same queue pair, so that data arrives first. Its own memory is registered for local use only.
 */

import { RoceError } from '../../core/errors.js';
import type { FairClient, FairQueue } from '../../core/fair-queue.js';
import { Permits } from '../../core/permits.js';
import { Access } from '../../verbs/access.js';
import type { WorkCompletion } from '../../verbs/completion-queue.js';
import type { MemoryRegion } from '../../verbs/memory-region.js';
import type { QueuePair } from '../../verbs/queue-pair.js';
import { serveCompletions } from '../link/completions.js';
import { type NumberedRequest, ServerSends } from '../link/server-sends.js';
import type { BufferLease, BufferPool } from '../pool/buffer-pool.js';
import { fairLease } from '../pool/fair-pool.js';
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
  readonly #sends: ServerSends;
  /** Requests whose inline data may still be read. */
  #unreleased = 0;
  #closing: Promise<void> | undefined;

  private constructor(parts: SkRdmaParts, share: SkServerShare, receives: MemoryRegion) {
    this.#parts = parts;
    this.#qp = parts.qp;
    this.#share = share;
    this.#memory = share.memory.join({
      stuckSinceNs: () => this.#sends.stuckSinceNs,
      onStuck: () => this.fail(new RoceError('ERR_ROCE_LIMIT', 'the client keeps memory that others wait for')),
    });
    this.#receives = receives;
    this.#sends = new ServerSends({
      qp: parts.qp,
      clock: parts.clock,
      reads: new Permits(ORD),
      pulls: share.pulls,
      close: () => this.close(),
    });
    this.#sends.start();
    serveCompletions(
      [parts.sendCq, parts.recvCq],
      (wrId) => this.#sends.onDone(wrId),
      (wc) => this.#onReceive(wc),
      (error) => this.fail(error),
    );
  }

  static async over(parts: SkRdmaParts, share: SkServerShare): Promise<RdmaServerChannel> {
    const memory = parts.pd.device.scratch.take(SK_RECEIVES * REQUEST_MESSAGE_BYTES_MAX);
    const receives = await parts.pd.regMr(memory, Access.LOCAL_WRITE);
    const channel = new RdmaServerChannel(parts, share, receives);
    for (let i = 0; i < SK_RECEIVES; i++) channel.#postReceive(i);
    return channel;
  }

  buffer(bytes: number): BufferLease<MemoryRegion> | Promise<BufferLease<MemoryRegion>> {
    return fairLease(this.#memory, this.#share.pool, bytes);
  }

  pull(request: SkRequest, into: DataBuffer, from: number, length: number): Promise<void> {
    const { slab, offset } = into as BufferLease<MemoryRegion>;
    const { addr, rkey } = request.descriptor;
    const remoteAddr = addr + BigInt(from);
    const sges = [slab.sge(offset + from, length)];
    return this.#sends.read({ opcode: 'RDMA_READ', wrId: 0, sges, remoteAddr, rkey }, length);
  }

  move(request: SkRequest, data: DataBuffer): void {
    const { slab, offset, length } = data as BufferLease<MemoryRegion>;
    const { addr: remoteAddr, rkey } = request.descriptor;
    const sges = [slab.sge(offset, length)];
    this.#sends.postUnsignaled({ opcode: 'RDMA_WRITE', wrId: 0, sges, remoteAddr, rkey, signaled: false });
  }

  reply(request: SkRequest, response: SkResponse, list: Uint8Array, data: DataBuffer | undefined): Promise<void> {
    const { rkey, length } = request.descriptor;
    const inline = encodeMessage(response, list, request.op === 'READ' ? undefined : data?.bytes);
    const send: NumberedRequest =
      length > 0
        ? { opcode: 'SEND_WITH_INV', wrId: 0, inline, invalidateRkey: rkey }
        : { opcode: 'SEND', wrId: 0, inline };
    return this.#sends.post(send).catch(() => {});
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#sends.failure ??= new RoceError('ERR_ROCE_CLOSED', 'the connection is closed');
    await this.#qp.close();
    this.#sends.giveUp();
    this.#memory.leave();
    await this.#receives.close();
    if (this.#unreleased === 0) this.#parts.pd.device.scratch.give(this.#receives.bytes);
    await this.#parts.sendCq.close();
    await this.#parts.recvCq.close();
    this.#parts.onClosed?.();
  }

  #postReceive(place: number): void {
    if (this.#sends.failure !== undefined) return;
    const sges = [this.#receives.sge(place * REQUEST_MESSAGE_BYTES_MAX, REQUEST_MESSAGE_BYTES_MAX)];
    this.#qp.postRecv({ wrId: place, sges });
  }

  #onReceive(wc: WorkCompletion): void {
    if (this.#sends.failure !== undefined) return;
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
    this.#unreleased++;
    this.onRequest({
      request,
      list: message.subarray(REQUEST_BYTES, dataBegin),
      inline: inlineBytes > 0 ? message.subarray(dataBegin) : undefined,
      release: () => {
        if (!held) return;
        held = false;
        this.#unreleased--;
        this.#postReceive(place);
      },
    });
  }

  #refuse(why: string): void {
    this.counters.malformed++;
    this.fail(new RoceError('ERR_ROCE_MISMATCH', `a request is malformed: ${why}`));
  }

  fail(error: Error): void {
    if (this.#sends.failure !== undefined) return;
    this.#sends.failure = error;
    this.onFailure(error);
  }
}

function descriptorFits({ op, length, descriptor }: SkRequest, inlineBytes: number): boolean {
  const moves = op === 'READ' || (op === 'WRITE' && inlineBytes === 0);
  return descriptor.length === (moves ? length : 0);
}
