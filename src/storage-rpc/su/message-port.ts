import { RoceError } from '../../core/errors.js';
import { Access } from '../../verbs/access.js';
import type { WorkCompletion } from '../../verbs/completion-queue.js';
import type { MemoryRegion } from '../../verbs/memory-region.js';
import type { SendWorkRequest } from '../../verbs/send-work-request.js';
import { serveCompletions } from '../link/completions.js';
import type { BufferLease } from '../pool/buffer-pool.js';
import { type MessageClass, SuCredits } from './credits.js';
import { readSuHeader, SU_HEADER_BYTES, type SuHeader, type SuType, writeSuHeader } from './header.js';
import { SU_RECEIVE_BYTES, SU_WINDOW, type SuParts } from './su-parts.js';

export interface SuMessage {
  readonly type: SuType;
  readonly flags?: number;
  readonly streamOff?: number;
  readonly dataLen?: number;
  readonly dataCrc?: number;
  readonly body?: Uint8Array;
  /** Instead: header and data in registered memory, the first 40 bytes of it for the header. */
  readonly lease?: BufferLease<MemoryRegion>;
  readonly before?: SendWorkRequest;
}

/** Its body is valid until `release`, which gives the receive back; safe to call twice. */
export interface SuReceived {
  readonly header: SuHeader;
  readonly body: Buffer;
  release(): void;
}

interface Queued {
  readonly message: SuMessage;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

function classOf(type: SuType): MessageClass {
  return type === 'DATA' || type === 'WRITE_DONE' || type === 'READ_REQ' ? 'data' : 'control';
}

const ROOM = 2;

export class MessagePort {
  onMessage: (received: SuReceived) => void = () => {};
  onFailure: (error: Error) => void = () => {};
  slotLimit: () => number = () => 0;
  readonly counters = { sent: 0, received: 0, malformed: 0 };
  readonly credits = new SuCredits(SU_WINDOW);
  readonly #parts: SuParts;
  readonly #receives: MemoryRegion;
  readonly #queues: Readonly<Record<MessageClass, Queued[]>> = { control: [], data: [] };
  readonly #completions: Queued[] = [];
  #sendSeq = 0;
  #receiveSeq = 0;
  #failure: Error | undefined;

  private constructor(parts: SuParts, receives: MemoryRegion) {
    this.#parts = parts;
    this.#receives = receives;
    serveCompletions(
      [parts.sendCq, parts.recvCq],
      () => this.#onSent(),
      (wc) => this.#onReceive(wc),
      (error) => this.fail(error),
    );
  }

  static async over(parts: SuParts): Promise<MessagePort> {
    const receives = await parts.pd.regMr(SU_WINDOW * SU_RECEIVE_BYTES, Access.LOCAL_WRITE);
    const port = new MessagePort(parts, receives);
    for (let place = 0; place < SU_WINDOW; place++) port.#postReceive(place);
    return port;
  }

  get isOpen(): boolean {
    return this.#failure === undefined;
  }

  get controlWaits(): boolean {
    return this.#queues.control.length > 0;
  }

  stopReceiving(): void {
    this.onMessage = ({ release }) => release();
  }

  /** Resolves when the peer's NIC has it. */
  send(message: SuMessage): Promise<void> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    return new Promise((resolve, reject) => {
      this.#queues[classOf(message.type)].push({ message, resolve, reject });
      this.pump();
    });
  }

  read(request: SendWorkRequest & { opcode: 'RDMA_READ' }): Promise<void> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    return new Promise((resolve, reject) => {
      this.#post({ message: { type: 'READ_REQ' }, resolve, reject }, request);
    });
  }

  pump(): void {
    for (const what of ['control', 'data'] as const) {
      const queue = this.#queues[what];
      while (queue.length > 0 && this.#failure === undefined && this.credits.allows(what)) {
        if (this.#parts.qp.sendRoom < ROOM) return;
        this.#transmit(queue.shift()!);
      }
    }
  }

  /** Everything that has not been sent rejects when the port is closed: until then the NIC may still use its memory. */
  fail(error: Error): void {
    if (this.#failure !== undefined) return;
    this.#failure = error;
    this.onFailure(error);
  }

  async close(): Promise<void> {
    this.#failure ??= new RoceError('ERR_ROCE_CLOSED', 'the connection is closed');
    await this.#parts.qp.close();
    for (const { reject } of this.#completions.splice(0)) reject(this.#failure);
    for (const queue of Object.values(this.#queues)) for (const { reject } of queue.splice(0)) reject(this.#failure);
    await this.#receives.close();
    await this.#parts.sendCq.close();
    await this.#parts.recvCq.close();
  }

  #transmit(queued: Queued): void {
    const { type, flags = 0, streamOff = 0, dataLen = 0, dataCrc = 0, body, lease, before } = queued.message;
    const header: SuHeader = {
      type,
      flags,
      msgSeq: this.#sendSeq,
      creditLimit: this.credits.onSend(),
      streamOff,
      dataLen,
      dataCrc,
      slotLimit: this.slotLimit(),
    };
    this.#sendSeq = (this.#sendSeq + 1) >>> 0;
    this.counters.sent++;
    if (before !== undefined) this.#parts.qp.postSend(before);
    if (lease !== undefined) {
      writeSuHeader(Buffer.from(lease.bytes.buffer, lease.bytes.byteOffset, SU_HEADER_BYTES), header);
      this.#post(queued, { opcode: 'SEND', sges: [lease.slab.sge(lease.offset, lease.length)] });
      return;
    }
    const inline = Buffer.allocUnsafe(SU_HEADER_BYTES + (body?.length ?? 0));
    writeSuHeader(inline, header);
    if (body !== undefined) inline.set(body, SU_HEADER_BYTES);
    this.#post(queued, { opcode: 'SEND', inline });
  }

  #post(queued: Queued, request: SendWorkRequest): void {
    this.#completions.push(queued);
    this.#parts.qp.postSend(request);
  }

  #onSent(): void {
    this.#completions.shift()?.resolve();
    this.pump();
  }

  #postReceive(place: number): void {
    if (this.#failure !== undefined) return;
    this.#parts.qp.postRecv({
      wrId: place,
      sges: [this.#receives.sge(place * SU_RECEIVE_BYTES, SU_RECEIVE_BYTES)],
    });
  }

  #onReceive(wc: WorkCompletion): void {
    if (this.#failure !== undefined) return;
    const place = Number(wc.wrId);
    const begin = place * SU_RECEIVE_BYTES;
    const bytes = this.#receives.bytes.subarray(begin, begin + wc.byteLen);
    const header = readSuHeader(bytes);
    const why = typeof header === 'string' ? header : this.#whyWrong(header);
    if (typeof header === 'string' || why !== undefined) {
      this.counters.malformed++;
      this.fail(new RoceError('ERR_ROCE_MISMATCH', `a message is malformed: ${why}`));
      return;
    }
    this.counters.received++;
    let held = true;
    this.onMessage({
      header,
      body: bytes.subarray(SU_HEADER_BYTES),
      release: () => {
        if (!held) return;
        held = false;
        this.#postReceive(place);
        this.credits.onRepost(header.type === 'DATA' ? 'data' : 'control');
      },
    });
    this.pump();
  }

  #whyWrong(header: SuHeader): string | undefined {
    if (header.msgSeq !== this.#receiveSeq) return 'out of sequence';
    this.#receiveSeq = (this.#receiveSeq + 1) >>> 0;
    return this.credits.onLimit(header.creditLimit) ? undefined : 'impossible credit';
  }
}
