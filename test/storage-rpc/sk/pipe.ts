/** A TCP connection in virtual time: bytes arrive after a delay, in order; either end can be cut. */

import type { EventQueue } from '../../../packages/lab/src/sim/event-queue.js';
import type { ByteStream } from '../../../src/storage-rpc/stream/byte-stream.js';

class PipeEnd implements ByteStream {
  onData: (bytes: Buffer) => void = () => {};
  onClose: (error: Error) => void = () => {};
  peer!: PipeEnd;
  /** May change what is sent. */
  tamper: (bytes: Buffer) => void = () => {};
  readonly #events: EventQueue;
  readonly #delayNs: number;
  readonly #paused: Buffer[] = [];
  #isPaused = false;
  #isOpen = true;

  constructor(events: EventQueue, delayNs: number) {
    this.#events = events;
    this.#delayNs = delayNs;
  }

  write(pieces: readonly Uint8Array[], onSent: () => void = () => {}): void {
    if (!this.#isOpen) return;
    const bytes = Buffer.concat(pieces);
    this.tamper(bytes);
    this.#events.after(this.#delayNs, () => {
      onSent();
      this.peer.#receive(bytes);
    });
  }

  #receive(bytes: Buffer): void {
    if (!this.#isOpen) return;
    if (this.#isPaused) this.#paused.push(bytes);
    else this.onData(bytes);
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
    while (!this.#isPaused && this.#paused.length > 0) this.onData(this.#paused.shift()!);
  }

  destroy(): void {
    this.#isOpen = false;
    this.#events.after(this.#delayNs, () => this.peer.#onPeerGone());
  }

  #onPeerGone(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.onClose(new Error('the connection was cut'));
  }
}

export type { PipeEnd };

export function createPipe(events: EventQueue, delayNs: number): [PipeEnd, PipeEnd] {
  const a = new PipeEnd(events, delayNs);
  const b = new PipeEnd(events, delayNs);
  a.peer = b;
  b.peer = a;
  return [a, b];
}
