/** A chunk's memory goes back to the peer's account when it is released, not when it was parsed. */

import { crc32c } from '../../core/crc32c.js';
import type { MemoryRegion } from '../../verbs/memory-region.js';
import type { RemoteBufferDescriptor } from '../link/remote-buffer-descriptor.js';
import type { BufferLease } from '../pool/buffer-pool.js';
import { type AbortReason, encodeReadStatus, type SuLimits } from './bodies.js';
import { SU_MORE, type SuHeader } from './header.js';
import type { MessagePort, SuReceived } from './message-port.js';
import type { OwnSlots } from './slot-ring.js';
import type { SuPools } from './su-parts.js';

/** A piece of the stream. Its bytes are valid until `release`, which lets the peer send more; safe to call twice. */
export interface SuChunk {
  /** A view of registered memory. */
  readonly bytes: Uint8Array;
  /** The last piece of one write of the peer. */
  readonly endsMessage: boolean;
  /** Lets the peer send more. */
  release(): void;
}

interface SlotMemory {
  readonly slots: OwnSlots;
  readonly region: MemoryRegion;
}

/** A chunk is read in pieces of this size, all of them at once. */
const READ_BYTES_MAX = 256 * 1024;
const LARGE_HELD_MAX = 2;

export class SuReceiver {
  crcMismatches = 0;
  #take: ((chunk: SuChunk) => void) | undefined;
  readonly #untaken: SuChunk[] = [];
  readonly #port: MessagePort;
  readonly #pools: SuPools;
  readonly #memory: SlotMemory;
  readonly #giveUp: (reason: AbortReason, text: string) => void;
  readonly #onReleased: () => void;
  #receivedOff = 0;
  #reading = false;
  #largeHeld = 0;
  #largeReleased: () => void = noop;

  constructor(
    port: MessagePort,
    pools: SuPools,
    memory: SlotMemory,
    giveUp: (reason: AbortReason, text: string) => void,
    onReleased: () => void,
  ) {
    this.#port = port;
    this.#pools = pools;
    this.#memory = memory;
    this.#giveUp = giveUp;
    this.#onReleased = onReleased;
  }

  set onChunk(take: (chunk: SuChunk) => void) {
    this.#take = take;
    for (const chunk of this.#untaken.splice(0)) take(chunk);
  }

  get receivedOff(): number {
    return this.#receivedOff;
  }

  onData({ header, body, release }: SuReceived): void {
    if (body.length !== header.dataLen) this.#refuse('data of another length');
    else if (this.#isNext(header) && this.#isIntact(header, body)) this.#deliver(header, body, release);
  }

  onWriteDone(header: SuHeader, { slotBytes }: SuLimits): void {
    const { slots, region } = this.#memory;
    const slot = slots.onWritten();
    if (slot === undefined || header.dataLen > slotBytes) {
      this.#refuse('a write where no slot was free');
      return;
    }
    const bytes = region.bytes.subarray(slot * slotBytes, slot * slotBytes + header.dataLen);
    if (this.#isNext(header) && this.#isIntact(header, bytes)) {
      this.#deliver(header, bytes, () => slots.release(slot));
    }
  }

  onReadRequest(header: SuHeader, place: RemoteBufferDescriptor | undefined, { chunkBytes }: SuLimits): void {
    const { dataLen } = header;
    if (place?.length !== dataLen || dataLen === 0 || dataLen > chunkBytes || this.#reading) {
      this.#refuse('an impossible chunk');
      return;
    }
    if (!this.#isNext(header)) return;
    this.#reading = true;
    this.#readChunk(header, place).catch(noop);
  }

  close(): void {
    this.#largeReleased();
  }

  async #readChunk(header: SuHeader, place: RemoteBufferDescriptor): Promise<void> {
    while (this.#largeHeld >= LARGE_HELD_MAX && this.#port.isOpen) {
      await new Promise<void>((resolve) => {
        this.#largeReleased = resolve;
      });
    }
    const lease = await this.#borrow(place.length);
    try {
      await this.#read(place, lease);
    } catch (error) {
      lease.release();
      throw error;
    }
    this.#reading = false;
    const intact = crc32c(lease.bytes) === header.dataCrc;
    if (intact) {
      this.#largeHeld++;
      this.#deliver(header, lease.bytes, () => {
        lease.release();
        this.#largeHeld--;
        this.#largeReleased();
      });
    } else {
      this.crcMismatches++;
      this.#receivedOff -= header.dataLen;
      lease.release();
    }
    await this.#port.send({ type: 'READ_DONE', body: encodeReadStatus(intact ? 'ok' : 'crc_mismatch') });
  }

  async #read(
    { addr, rkey, length }: RemoteBufferDescriptor,
    { slab, offset }: BufferLease<MemoryRegion>,
  ): Promise<void> {
    const reads: Promise<void>[] = [];
    for (let at = 0; at < length; at += READ_BYTES_MAX) {
      const sges = [slab.sge(offset + at, Math.min(READ_BYTES_MAX, length - at))];
      reads.push(this.#port.read({ opcode: 'RDMA_READ', sges, remoteAddr: addr + BigInt(at), rkey }));
    }
    for (const outcome of await Promise.allSettled(reads)) if (outcome.status === 'rejected') throw outcome.reason;
  }

  async #borrow(bytes: number): Promise<BufferLease<MemoryRegion>> {
    try {
      return await this.#pools.local.acquire(bytes);
    } catch (error) {
      this.#giveUp('no_buffers', (error as Error).message);
      throw error;
    }
  }

  #isNext({ streamOff, dataLen }: SuHeader): boolean {
    if (streamOff !== this.#receivedOff) {
      this.#refuse('data from elsewhere in the stream');
      return false;
    }
    this.#receivedOff += dataLen;
    return true;
  }

  /** Small and medium data has no second copy: if it is wrong the connection ends. */
  #isIntact({ dataCrc }: SuHeader, bytes: Uint8Array): boolean {
    if (crc32c(bytes) === dataCrc) return true;
    this.crcMismatches++;
    this.#giveUp('crc', 'data does not match its checksum');
    return false;
  }

  #refuse(why: string): void {
    this.#giveUp('protocol', why);
  }

  #deliver({ flags }: SuHeader, bytes: Uint8Array, free: () => void): void {
    let held = true;
    const chunk: SuChunk = {
      bytes,
      endsMessage: (flags & SU_MORE) === 0,
      release: () => {
        if (!held) return;
        held = false;
        free();
        this.#onReleased();
      },
    };
    if (this.#take === undefined) this.#untaken.push(chunk);
    else this.#take(chunk);
  }
}

function noop(): void {}
