/**
 * The client's end of sK-RDMA (Azure storage paper §4.2, figure 5). REG_MR and SEND are posted together (work after
 * REG_MR waits for it); the server READs or WRITEs the memory and answers by SEND_WITH_INV. Memory safety: (a) a
 * response must invalidate exactly its request's key, else the connection fails; (b) a response without invalidation is
 * followed by LOCAL_INV before delivery; (c) an abandoned request is withdrawn by LOCAL_INV; (d) after a failure the
 * queue pair and protection domain are closed before memory is released; (e) keys change with every mapping
 * (mappable-slab.ts). A call ends when its SEND has completed *and* its response is there: until then the transport may
 * retransmit from its buffer.
 */

import { RoceError } from '../../core/errors.js';
import { Access } from '../../verbs/access.js';
import type { WorkCompletion } from '../../verbs/completion-queue.js';
import type { FastRegisterMemoryRegion, MemoryRegion } from '../../verbs/memory-region.js';
import type { QueuePair } from '../../verbs/queue-pair.js';
import { serveCompletions } from '../link/completions.js';
import { NO_REMOTE_BUFFER, type RemoteBufferDescriptor } from '../link/remote-buffer-descriptor.js';
import { BufferLease, BufferPool } from '../pool/buffer-pool.js';
import type { SkCall, SkClientChannel, SkReply } from './channel.js';
import { MappableSlab, Mapping } from './mappable-slab.js';
import { OwnMemory } from './own-memory.js';
import { SK_RECEIVES, type SkRdmaParts } from './rdma-parts.js';
import {
  REQUEST_BYTES,
  REQUEST_MESSAGE_BYTES_MAX,
  SK_INLINE,
  SK_NO_SLOT,
  SK_SLOTS_MAX,
  SK_WRITE_PART_BYTES,
  writeRequest,
} from './request.js';
import {
  RESPONSE_BYTES,
  RESPONSE_MESSAGE_BYTES_MAX,
  readResponse,
  responseInlineBytes,
  responseListBytes,
  type SkResponse,
} from './response.js';

interface CallInProgress {
  readonly call: SkCall;
  mapping: Mapping | undefined;
  sent: boolean;
  answer: { readonly response: SkResponse; readonly body: Buffer } | undefined;
  onWithdrawn: (() => void) | undefined;
}

/** wr_id of a LOCAL_INV: that of the SEND, and this. */
const INVALIDATION = 0x1_0000;
const SLOTS = SK_SLOTS_MAX + 1;

export class RdmaClientChannel implements SkClientChannel {
  readonly transport = 'rdma';
  onReply: (reply: SkReply) => void = () => {};
  onFailure: (error: Error) => void = () => {};
  readonly counters = { bogusInvalidates: 0, missingInvalidates: 0, malformed: 0, unexpected: 0 };
  readonly #parts: SkRdmaParts;
  readonly #qp: QueuePair;
  readonly #requests: MemoryRegion;
  readonly #receives: MemoryRegion;
  readonly #pool: BufferPool<MappableSlab>;
  readonly #own: OwnMemory;
  /** By slot; PING and RESUME have the last place. */
  readonly #calls: Array<CallInProgress | undefined> = Array(SLOTS).fill(undefined);
  readonly #maps = new Set<Promise<void>>();
  #ended = false;
  #closing: Promise<void> | undefined;

  private constructor(
    parts: SkRdmaParts,
    { requests, receives }: { readonly requests: MemoryRegion; readonly receives: MemoryRegion },
    poolBytesMax: number,
    own: OwnMemory,
  ) {
    this.#parts = parts;
    this.#own = own;
    this.#qp = parts.qp;
    this.#requests = requests;
    this.#receives = receives;
    this.#pool = new BufferPool({
      allocate: (bytes) => MappableSlab.create(parts.pd, bytes),
      clock: parts.clock,
      bytesMax: poolBytesMax,
    });
    serveCompletions(
      [parts.sendCq, parts.recvCq],
      (wrId) => this.#onSent(wrId),
      (wc) => this.#onReceive(wc),
      (error) => this.fail(error),
    );
  }

  static async over(parts: SkRdmaParts, poolBytesMax: number, own = new OwnMemory()): Promise<RdmaClientChannel> {
    const requests = await parts.pd.regMr(SLOTS * REQUEST_MESSAGE_BYTES_MAX, Access.LOCAL_WRITE);
    const receives = await parts.pd.regMr(SK_RECEIVES * RESPONSE_MESSAGE_BYTES_MAX, Access.LOCAL_WRITE);
    const channel = new RdmaClientChannel(parts, { requests, receives }, poolBytesMax, own);
    for (let i = 0; i < SK_RECEIVES; i++) channel.#postReceive(i);
    return channel;
  }

  get pooledCalls(): number {
    const { hits, misses } = this.#pool.counters;
    return hits + misses;
  }

  send(call: SkCall): void {
    if (this.#ended) return;
    const place = callIndexOf(call.request.slot);
    const mine: CallInProgress = { call, mapping: undefined, sent: false, answer: undefined, onWithdrawn: undefined };
    this.#calls[place] = mine;
    const { op, length, flags } = call.request;
    const moves = op === 'READ' || (op === 'WRITE' && (flags & SK_INLINE) === 0);
    if (!moves || length === 0) this.#post(place, mine, NO_REMOTE_BUFFER);
    else {
      const atOnce = this.#mapPooled(mine);
      if (atOnce !== undefined) {
        this.#post(place, mine, atOnce);
        return;
      }
      const mapped = this.#map(mine).then(
        (descriptor) => this.#post(place, mine, descriptor),
        (error: Error) => this.fail(error),
      );
      this.#maps.add(mapped);
      void mapped.then(() => this.#maps.delete(mapped));
    }
  }

  async withdraw(slot: number): Promise<void> {
    const mine = this.#calls[callIndexOf(slot)];
    if (mine?.mapping?.open !== true || this.#ended) return;
    await this.#invalidate(callIndexOf(slot), mine, mine.mapping);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#ended = true;
    await this.#qp.close();
    await this.#pool.close();
    await Promise.all(this.#maps);
    this.#own.forget(this.#parts.pd);
    await this.#parts.pd.close();
    await this.#parts.sendCq.close();
    await this.#parts.recvCq.close();
    this.#parts.onClosed?.();
  }

  /**
   * {@link #map} without waiting, if memory and a region of the pool are available; else undefined.
   */
  #mapPooled(mine: CallInProgress): RemoteBufferDescriptor | undefined {
    const { request, data, into } = mine.call;
    const own = data ?? into;
    if (own !== undefined && this.#own.has(own)) return undefined;
    const lease = this.#pool.acquireNow(request.length);
    if (lease === undefined) return undefined;
    const region = lease.slab.takeNow();
    if (region === undefined) {
      lease.release();
      return undefined;
    }
    if (data !== undefined) lease.bytes.set(data);
    return this.#open(mine, lease, region);
  }

  /**
   * Finds memory for the call and registers it; data to be written is copied there, so that no memory is exposed that
   * the program has not allocated for that.
   */
  async #map(mine: CallInProgress): Promise<RemoteBufferDescriptor> {
    const { request, data, into } = mine.call;
    const own = data ?? into;
    const slab = own === undefined ? undefined : await this.#own.slabOf(this.#parts.pd, own);
    const lease =
      slab === undefined
        ? await this.#pool.acquire(request.length)
        : new BufferLease(slab, own!.byteOffset - slab.bytes.byteOffset, request.length, () => {});
    const region = await lease.slab.take();
    if (data !== undefined && slab === undefined) lease.bytes.set(data);
    return this.#open(mine, lease, region);
  }

  #open(
    mine: CallInProgress,
    lease: BufferLease<MappableSlab>,
    region: FastRegisterMemoryRegion,
  ): RemoteBufferDescriptor {
    const mapping = new Mapping(lease, region);
    mine.mapping = mapping;
    return { addr: mapping.addr, rkey: mapping.key, length: lease.length };
  }

  #post(place: number, mine: CallInProgress, descriptor: RemoteBufferDescriptor): void {
    if (this.#ended) return;
    const { request, data, checks } = mine.call;
    const begin = place * REQUEST_MESSAGE_BYTES_MAX;
    const message = this.#requests.bytes.subarray(begin, begin + REQUEST_MESSAGE_BYTES_MAX);
    writeRequest(message, request, descriptor, checks.dataCrc);
    message.set(checks.list, REQUEST_BYTES);
    let length = REQUEST_BYTES + checks.list.length;
    if ((request.flags & SK_INLINE) !== 0 && data !== undefined) {
      message.set(data, length);
      length += data.length;
    }
    const { mapping } = mine;
    const send = { opcode: 'SEND', wrId: place, sges: [this.#requests.sge(begin, length)] } as const;
    try {
      if (mapping === undefined) this.#qp.postSend(send);
      else {
        const access = request.op === 'READ' ? Access.LOCAL_WRITE | Access.REMOTE_WRITE : Access.REMOTE_READ;
        this.#qp.postSend(mapping.registration(access), send);
        // The next part is made in the same callback: this one leaves first, and so does the data of those before it.
        if (request.op === 'WRITE' && request.length === SK_WRITE_PART_BYTES) this.#parts.pd.device.flushDoorbells();
      }
    } catch (error) {
      this.fail(error as Error);
    }
  }

  #onSent(wrId: number): void {
    const mine = this.#calls[wrId % INVALIDATION];
    if (mine === undefined) return;
    if (wrId >= INVALIDATION) {
      mine.mapping!.open = false;
      mine.onWithdrawn?.();
    } else mine.sent = true;
    this.#finish(wrId % INVALIDATION, mine);
  }

  #postReceive(place: number): void {
    const sges = [this.#receives.sge(place * RESPONSE_MESSAGE_BYTES_MAX, RESPONSE_MESSAGE_BYTES_MAX)];
    this.#qp.postRecv({ wrId: place, sges });
  }

  #onReceive(wc: WorkCompletion): void {
    if (this.#ended) return;
    const begin = Number(wc.wrId) * RESPONSE_MESSAGE_BYTES_MAX;
    const message = Buffer.from(this.#receives.bytes.subarray(begin, begin + wc.byteLen));
    this.#postReceive(Number(wc.wrId));
    const response = readResponse(message);
    if (typeof response === 'string' || !isWhole(response, message.length)) {
      this.counters.malformed++;
      this.fail(protocolError(`a response is malformed: ${typeof response === 'string' ? response : 'bad_length'}`));
      return;
    }
    const place = callIndexOf(response.slot);
    const mine = this.#calls[place];
    if (mine === undefined || mine.answer !== undefined || mine.call.request.slotSeq !== response.slotSeq) {
      this.counters.unexpected++;
      this.fail(protocolError(`there is a response for slot ${response.slot}, which has no request`));
      return;
    }
    mine.answer = { response, body: message.subarray(RESPONSE_BYTES) };
    this.#checkInvalidation(place, mine, wc.invalidatedRkey);
  }

  #checkInvalidation(place: number, mine: CallInProgress, invalidated: number | undefined): void {
    const { mapping } = mine;
    if (invalidated !== undefined && invalidated !== mapping?.key) {
      this.counters.bogusInvalidates++;
      this.fail(protocolError(`the response of slot ${mine.call.request.slot} invalidated another key`));
      return;
    }
    if (mapping?.open === true && invalidated === undefined) {
      this.counters.missingInvalidates++;
      void this.#invalidate(place, mine, mapping);
      return;
    }
    if (mapping !== undefined) mapping.open = false;
    this.#finish(place, mine);
  }

  #invalidate(place: number, mine: CallInProgress, mapping: Mapping): Promise<void> {
    return new Promise((resolve) => {
      mine.onWithdrawn = resolve;
      this.#qp.postSend({ opcode: 'LOCAL_INV', wrId: INVALIDATION + place, invalidateRkey: mapping.key });
    });
  }

  #finish(place: number, mine: CallInProgress): void {
    const { answer, mapping } = mine;
    if (this.#ended || !mine.sent || answer === undefined || mapping?.open === true) return;
    this.#calls[place] = undefined;
    const { response, body } = answer;
    const listBytes = responseListBytes(response);
    const list = body.subarray(0, listBytes);
    const inlineBytes = responseInlineBytes(response);
    const data =
      inlineBytes > 0 ? body.subarray(listBytes) : (mapping?.lease.bytes ?? body).subarray(0, response.moved);
    this.onReply({ response, list, data });
    mapping?.release();
  }

  fail(error: Error): void {
    if (this.#ended) return;
    this.#ended = true;
    for (const mine of this.#calls) mine?.onWithdrawn?.();
    this.onFailure(error);
  }
}

function callIndexOf(slot: number): number {
  return slot === SK_NO_SLOT ? SK_SLOTS_MAX : Math.min(slot, SK_SLOTS_MAX);
}

function isWhole(response: SkResponse, bytes: number): boolean {
  return bytes === RESPONSE_BYTES + responseListBytes(response) + responseInlineBytes(response);
}

function protocolError(message: string): RoceError {
  return new RoceError('ERR_ROCE_MISMATCH', message);
}
