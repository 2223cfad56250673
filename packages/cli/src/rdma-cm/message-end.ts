/** One end of a connection that carries a number of SENDs each way: queue pair, completion queue, and the memory that all messages share. */

import { initializeQp } from 'rocev2/internal/cm';
import { RoceError } from 'rocev2/internal/core';
import {
  Access,
  type CompletionQueue,
  checkCompletion,
  type MemoryRegion,
  type ProtectionDomain,
  type QueuePair,
  type RdmaDevice,
} from 'rocev2/internal/verbs';

/** The messages of a run. */
export interface Messages {
  /** Messages each way; 0: only connect. */
  readonly count: number;
  /** Size of a message in bytes. */
  readonly sizeBytes: number;
}

/** A queue pair that receives and sends its messages. */
export class MessageEnd {
  /** In INIT, with all receives posted. */
  readonly qp: QueuePair;
  readonly #messages: Messages;
  readonly #cq: CompletionQueue;
  readonly #pd: ProtectionDomain;
  readonly #mr: MemoryRegion;
  #received = 0;
  #sent = 0;

  private constructor(
    qp: QueuePair,
    { cq, pd, mr }: { cq: CompletionQueue; pd: ProtectionDomain; mr: MemoryRegion },
    messages: Messages,
  ) {
    this.qp = qp;
    this.#cq = cq;
    this.#pd = pd;
    this.#mr = mr;
    this.#messages = messages;
  }

  /** Brings a queue pair to INIT, ready for all messages of its peer. */
  static async create(device: RdmaDevice, messages: Messages): Promise<MessageEnd> {
    const { count, sizeBytes } = messages;
    const depth = Math.max(count, 1);
    const cq = await device.createCq(2 * depth);
    const pd = await device.createPd();
    const mr = await pd.regMr(2 * Math.max(sizeBytes, 1), Access.LOCAL_WRITE);
    const qp = await pd.createQp({ sendCq: cq, maxSendWr: depth, maxRecvWr: depth });
    await initializeQp(qp);
    const end = new MessageEnd(qp, { cq, pd, mr }, messages);
    for (let i = 0; i < count; i++) qp.postRecv({ sges: [mr.sge(sizeBytes, sizeBytes)] });
    return end;
  }

  /** Posts all messages. */
  send(): void {
    const { count, sizeBytes } = this.#messages;
    for (let i = 0; i < count; i++) this.qp.postSend({ opcode: 'SEND', sges: [this.#mr.sge(0, sizeBytes)] });
  }

  /** Resolves when all messages of the peer have arrived. Rejects with ERR_ROCE_CONNECT if the peer disconnects first. */
  async received(alive: () => void): Promise<void> {
    while (this.#received < this.#messages.count) await this.#next(alive);
  }

  /** Resolves when the peer has acknowledged all messages. Rejects with ERR_ROCE_CONNECT if the peer disconnects first. */
  async sent(alive: () => void): Promise<void> {
    while (this.#sent < this.#messages.count) await this.#next(alive);
  }

  async #next(alive: () => void): Promise<void> {
    const wc = await this.#cq.next();
    if (wc.statusName === 'WR_FLUSH_ERR') throw new RoceError('ERR_ROCE_CONNECT', 'the peer has disconnected');
    const { opcode } = checkCompletion(wc);
    if (opcode === 'RECV') this.#received++;
    else this.#sent++;
    alive();
  }

  /** Releases all resources. */
  async close(): Promise<void> {
    for (const resource of [this.qp, this.#cq, this.#mr, this.#pd]) await resource.close();
  }
}
