import { crc32c } from '../../core/crc32c.js';
import { RoceError } from '../../core/errors.js';
import { PromiseMutex } from '../../core/promise-mutex.js';
import type { MemoryRegion } from '../../verbs/memory-region.js';
import type { RemoteBufferDescriptor } from '../link/remote-buffer-descriptor.js';
import type { BufferLease } from '../pool/buffer-pool.js';
import { type AbortReason, encodeRemoteBuffer, type ReadStatus, type SuLimits } from './bodies.js';
import { SU_HEADER_BYTES, SU_MORE } from './header.js';
import type { MessagePort } from './message-port.js';
import type { PeerSlots } from './slot-ring.js';
import type { SuPools } from './su-parts.js';

export interface SendTerms {
  readonly limits: SuLimits;
  readonly peerSlots: PeerSlots;
  readonly slotPlace: RemoteBufferDescriptor;
}

/** Transmissions of a chunk that the peer does not read as it was written. */
const ATTEMPTS_MAX = 3;

export class SuSender {
  readonly counters = {
    /** Copied into a SEND. */
    small: 0,
    /** Written into a slot of the peer. */
    medium: 0,
    /** Read by the peer. */
    large: 0,
  };
  readonly #port: MessagePort;
  readonly #pools: SuPools;
  readonly #giveUp: (reason: AbortReason, text: string) => void;
  readonly #terms: Promise<SendTerms>;
  readonly #writing = new PromiseMutex();
  #ended = false;
  #sentOff = 0;
  #slotFreed: () => void = noop;
  #readDone: ((status: ReadStatus) => void) | undefined;
  #drained: () => void = noop;

  constructor(
    port: MessagePort,
    pools: SuPools,
    terms: Promise<SendTerms>,
    giveUp: (reason: AbortReason, text: string) => void,
  ) {
    this.#port = port;
    this.#pools = pools;
    this.#terms = terms;
    this.#giveUp = giveUp;
  }

  write(data: Uint8Array): Promise<void> {
    if (this.#ended) {
      return Promise.reject(new RoceError('ERR_ROCE_INVALID_STATE', 'the stream has been ended on this side'));
    }
    return this.#writing.run(() => this.#writeMessage(data));
  }

  async end(): Promise<void> {
    this.#ended = true;
    await this.#writing.settled;
    const drained = new Promise<void>((resolve) => {
      this.#drained = resolve;
    });
    await this.#port.send({ type: 'DRAIN', streamOff: this.#sentOff });
    await drained;
    if (!this.#port.isOpen) throw endedEarly();
  }

  onSlots(): void {
    this.#slotFreed();
  }

  onReadDone(status: ReadStatus): boolean {
    const readDone = this.#readDone;
    this.#readDone = undefined;
    readDone?.(status);
    return readDone !== undefined;
  }

  onDrainAck(): void {
    this.#drained();
  }

  close(): void {
    this.#slotFreed();
    this.#readDone?.('ok');
    this.#drained();
  }

  async #writeMessage(data: Uint8Array): Promise<void> {
    const terms = await this.#terms;
    const { smallBytesMax, slotBytes, chunkBytes } = terms.limits;
    if (data.length <= smallBytesMax) await this.#writeSmall(data);
    else if (data.length <= slotBytes) await this.#writeMedium(data, terms);
    else {
      for (let at = 0; at < data.length; at += chunkBytes) {
        const end = Math.min(at + chunkBytes, data.length);
        await this.#writeLarge(data.subarray(at, end), end < data.length);
      }
    }
  }

  async #writeSmall(data: Uint8Array): Promise<void> {
    const lease = await this.#borrow('local', SU_HEADER_BYTES + data.length);
    try {
      lease.bytes.set(data, SU_HEADER_BYTES);
      this.counters.small++;
      await this.#port.send({ type: 'DATA', ...this.#nextChunk(data), lease });
    } finally {
      lease.release();
    }
  }

  async #writeMedium(data: Uint8Array, { limits, peerSlots, slotPlace }: SendTerms): Promise<void> {
    const lease = await this.#borrow('local', data.length);
    try {
      lease.bytes.set(data);
      while (!peerSlots.available && this.#port.isOpen) {
        await new Promise<void>((resolve) => {
          this.#slotFreed = resolve;
        });
      }
      const remoteAddr = slotPlace.addr + BigInt(peerSlots.take() * limits.slotBytes);
      const sges = [lease.slab.sge(lease.offset, lease.length)];
      this.counters.medium++;
      await this.#port.send({
        type: 'WRITE_DONE',
        ...this.#nextChunk(data),
        before: { opcode: 'RDMA_WRITE', sges, remoteAddr, rkey: slotPlace.rkey, signaled: false },
      });
    } finally {
      lease.release();
    }
  }

  async #writeLarge(data: Uint8Array, more: boolean): Promise<void> {
    const lease = await this.#borrow('exposed', data.length);
    try {
      lease.bytes.set(data);
      const chunk = this.#nextChunk(data);
      const { slab, offset, length } = lease;
      const body = encodeRemoteBuffer({ addr: slab.addr + BigInt(offset), rkey: slab.rkey, length });
      this.counters.large++;
      for (let attempt = 1; ; attempt++) {
        const done = new Promise<ReadStatus>((resolve) => {
          this.#readDone = resolve;
        });
        await this.#port.send({ type: 'READ_REQ', flags: more ? SU_MORE : 0, ...chunk, body });
        const status = await done;
        if (!this.#port.isOpen) throw endedEarly();
        if (status === 'ok') return;
        if (attempt === ATTEMPTS_MAX) {
          const why = `the peer read wrong data ${attempt} times`;
          this.#giveUp('crc', why);
          throw new RoceError('ERR_ROCE_CONNECT', why);
        }
      }
    } finally {
      lease.release();
    }
  }

  #nextChunk(data: Uint8Array) {
    const streamOff = this.#sentOff;
    this.#sentOff += data.length;
    return { streamOff, dataLen: data.length, dataCrc: crc32c(data) };
  }

  async #borrow(pool: 'local' | 'exposed', bytes: number): Promise<BufferLease<MemoryRegion>> {
    try {
      return await this.#pools[pool].acquire(bytes);
    } catch (error) {
      this.#giveUp('no_buffers', (error as Error).message);
      throw error;
    }
  }
}

function endedEarly(): RoceError {
  return new RoceError('ERR_ROCE_CLOSED', 'the connection ended before the peer had everything');
}

function noop(): void {}
