/**
 * Trains of datagrams are cut apart and missing checksums made ({@link completeFrame}); a super-frame of TCP is no
 * frame, and goes its own way.
 */

import { RoceError } from 'rocev2/internal/core';
import {
  completeFrame,
  FRAME_OF_DATAGRAMS,
  FRAME_OF_SEGMENTS,
  FrameReceiveVector,
  FrameSendVector,
  type LibC,
  LoopReadiness,
  libC,
  openPacketSocket,
  splitDatagrams,
} from 'rocev2/internal/dgram-ext';
import type { FrameHandler, FrameLink } from './frame-link.js';

const SLOTS = 32;
/** Calls after which the event loop continues. */
const CALLS_A_TURN = 4;

export class InterfaceLink implements FrameLink {
  readonly description: string;
  readonly unknownPeers = 0;
  onFrame: FrameHandler = () => {};
  onFrames: () => void = () => {};
  onSuperFrame: FrameHandler = () => {};
  readonly #fd: number;
  readonly #lib: LibC;
  readonly #received: FrameReceiveVector;
  readonly #sending: FrameSendVector;
  readonly #readiness: LoopReadiness;
  #closed = false;
  #isPending = false;

  constructor(interfaceName: string) {
    this.description = interfaceName;
    this.#fd = openPacketSocket(interfaceName);
    this.#lib = libC() as LibC;
    this.#received = new FrameReceiveVector(this.#lib, SLOTS);
    this.#sending = new FrameSendVector(this.#lib, SLOTS);
    this.#readiness = new LoopReadiness(this.#lib, this.#fd, this.#onReadable);
  }

  get errors(): number {
    return this.#sending.refused;
  }

  send(frame: Uint8Array): void {
    if (this.#sending.isFull) this.#sending.flush(this.#fd);
    this.#sending.add(frame, 0, frame.length);
  }

  sendSuperFrame(bytes: Uint8Array, offset: number, length: number): void {
    if (this.#sending.isFull) this.#sending.flush(this.#fd);
    this.#sending.addWithHeader(bytes, offset, length);
  }

  flush(): boolean {
    if (!this.#closed) this.#sending.flush(this.#fd);
    return true;
  }

  close(): Promise<void> {
    if (this.#closed) return Promise.resolve();
    this.#closed = true;
    this.#readiness.close();
    this.#lib.close(this.#fd);
    return Promise.resolve();
  }

  readonly #onReadable = (): void => {
    if (this.#isPending) return;
    this.#isPending = true;
    setImmediate(this.#read);
  };

  readonly #read = (): void => {
    this.#isPending = false;
    if (this.#closed) return;
    const received = this.#received;
    for (let call = 0; call < CALLS_A_TURN; call++) {
      const count = received.receive(this.#fd);
      for (let slot = 0; slot < count; slot++) this.#takeSlot(slot);
      if (count > 0) this.onFrames();
      if (count < SLOTS) break;
    }
    this.#readiness.rest();
  };

  #takeSlot(slot: number): void {
    const received = this.#received;
    received.open(slot);
    const { slab, header, frame, length } = received;
    const kind = completeFrame(slab, header, frame, length);
    if (kind === FRAME_OF_SEGMENTS) this.onSuperFrame(slab, header, length + (frame - header));
    else if (kind === FRAME_OF_DATAGRAMS) splitDatagrams(slab, header, frame, length, this.#take);
    else this.onFrame(slab, frame, length);
  }

  readonly #take = (frame: number, length: number): void => this.onFrame(this.#received.slab, frame, length);
}

export function joinSuperFrames(one: InterfaceLink, other: InterfaceLink): void {
  if (one.description === other.description) {
    throw new RoceError('ERR_ROCE_CONFLICT', `'${one.description}' cannot be both ends of a wire`);
  }
  one.onSuperFrame = (bytes, offset, length) => other.sendSuperFrame(bytes, offset, length);
  other.onSuperFrame = (bytes, offset, length) => one.sendSuperFrame(bytes, offset, length);
}
