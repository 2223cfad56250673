import { RoceError } from 'rocev2/internal/core';
import { type Completion, SQE_BYTES } from '../capsule.js';
import { NvmeStatusError } from '../status.js';
import type { HostCommand, HostConnection } from './host-connection.js';

export interface HostRequest extends Omit<HostCommand, 'sqe'> {
  readonly opcode: number;
  /** Byte 4 to 7: namespace, or fabrics command type. */
  readonly nsid?: number;
  /** Command dwords 10 to 15. */
  readonly dwords?: readonly number[];
  readonly fill?: (sqe: Buffer) => void;
}

interface Pending {
  readonly resolve: (completion: Completion) => void;
  readonly reject: (error: Error) => void;
}

export class HostQueue {
  onFailure: (error: Error) => void = () => {};
  readonly connection: HostConnection;
  readonly #pending = new Map<number, Pending>();
  readonly #freeIds: number[];
  readonly #waiting: Array<() => void> = [];
  #failure: Error | undefined;

  /** Takes over the connection; `entries` commands may be in flight, and one fewer to leave the queue a free entry. */
  constructor(connection: HostConnection, entries: number) {
    this.connection = connection;
    this.#freeIds = Array.from({ length: entries - 1 }, (_, i) => entries - 2 - i);
    connection.onCompletion = (completion) => this.#onCompletion(completion);
    connection.onFailure = (error) => this.fail(error);
  }

  async execute(request: HostRequest): Promise<Completion> {
    if (this.#freeIds.length === 0) await new Promise<void>((go) => this.#waiting.push(go));
    if (this.#failure !== undefined) throw this.#failure;
    const id = this.#freeIds.pop()!;
    const { opcode, nsid = 0, dwords = [], fill, ...data } = request;
    const sqe = Buffer.alloc(SQE_BYTES);
    sqe[0] = opcode;
    sqe.writeUInt16LE(id, 2);
    sqe.writeUInt32LE(nsid, 4);
    dwords.forEach((dword, i) => {
      sqe.writeUInt32LE(dword >>> 0, 40 + 4 * i);
    });
    fill?.(sqe);
    const completion = await new Promise<Completion>((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      this.connection.send({ sqe, ...data });
    });
    if (completion.status !== 0) {
      const what = `NVMe command 0x${opcode.toString(16).padStart(2, '0')}`;
      throw new NvmeStatusError(completion.status, what, Number(completion.result & 0xffff_ffffn));
    }
    return completion;
  }

  fail(error: Error): void {
    if (this.#failure !== undefined) return;
    this.#failure = error;
    this.connection.fail(error);
    for (const { reject } of this.#pending.values()) reject(error);
    this.#pending.clear();
    for (const go of this.#waiting.splice(0)) go();
    this.onFailure(error);
  }

  async close(): Promise<void> {
    this.fail(new RoceError('ERR_ROCE_CLOSED', 'the queue is closed'));
    await this.connection.close();
  }

  #onCompletion(completion: Completion): void {
    const pending = this.#pending.get(completion.id);
    if (pending === undefined) {
      this.fail(
        new RoceError('ERR_ROCE_MISMATCH', `there is an answer to command ${completion.id}, which was not sent`),
      );
      return;
    }
    this.#pending.delete(completion.id);
    this.#freeIds.push(completion.id);
    this.#waiting.shift()?.();
    pending.resolve(completion);
  }
}
