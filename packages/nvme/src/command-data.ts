import type { Permits } from 'rocev2/internal/core';
import type { DataBuffer } from 'rocev2/internal/storage-rpc';
import { type DataPlace, NO_DATA, readSgl } from './sgl.js';
import { NvmeStatusError, refuse, STATUS } from './status.js';
import type { IncomingCapsule, TargetConnection } from './target-connection.js';

export class CommandData {
  readonly #connection: TargetConnection;
  readonly #capsule: IncomingCapsule;
  readonly #share: Permits | undefined;
  #place: DataPlace | undefined;
  #buffer: DataBuffer | undefined;
  #taken = 0;
  #isAnswer = false;

  constructor(connection: TargetConnection, capsule: IncomingCapsule, share?: Permits) {
    this.#connection = connection;
    this.#capsule = capsule;
    this.#share = share;
  }

  /** Throws the status for a descriptor that is not allowed. Commands without data ignore theirs. */
  get place(): DataPlace {
    const { command, data } = this.#capsule;
    if (this.#place === undefined && !command.hasSgl) throw refuse(STATUS.INVALID_FIELD);
    this.#place ??= readSgl(command, this.#connection.external, data.length);
    return this.#place;
  }

  /** None as long as the command has moved no data. */
  get usedPlace(): DataPlace {
    return this.#place ?? NO_DATA;
  }

  get answer(): DataBuffer | undefined {
    return this.#isAnswer ? this.#buffer : undefined;
  }

  /** Throws the status to answer with; rejects when the connection fails. */
  async fetch(length: number): Promise<Uint8Array> {
    this.#expectLength(length);
    const { place } = this;
    if (place.kind === 'capsule') {
      if (this.#capsule.isDamaged) throw new NvmeStatusError(STATUS.TRANSIENT_TRANSPORT_ERROR);
      return this.#capsule.data.subarray(place.offset, place.offset + length);
    }
    const buffer = await this.#acquire(length);
    await this.#connection.pull(this.#capsule.command, place, buffer);
    return buffer.bytes;
  }

  async room(length: number): Promise<Uint8Array> {
    this.#expectLength(length);
    if (this.place.kind === 'capsule') throw refuse(STATUS.INVALID_FIELD);
    const buffer = await this.#acquire(length);
    this.#isAnswer = true;
    return buffer.bytes;
  }

  async give(bytes: Uint8Array, length: number): Promise<void> {
    const room = await this.room(length);
    const part = bytes.subarray(0, length);
    room.set(part);
    room.fill(0, part.length);
  }

  dropAnswer(): void {
    this.#isAnswer = false;
  }

  release(): void {
    this.#buffer?.release();
    this.#buffer = undefined;
    this.#share?.give(this.#taken);
    this.#taken = 0;
  }

  #expectLength(length: number): void {
    if (this.place.length !== length) throw refuse(STATUS.SGL_LENGTH_INVALID);
  }

  async #acquire(bytes: number): Promise<DataBuffer> {
    await this.#share?.take(bytes);
    if (this.#share !== undefined) this.#taken = bytes;
    this.#buffer = await this.#connection.buffer(bytes);
    return this.#buffer;
  }
}
