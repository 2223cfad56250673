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

export interface Messages {
  readonly count: number;
  readonly sizeBytes: number;
}

export class MessageEnd {
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

  send(): void {
    const { count, sizeBytes } = this.#messages;
    for (let i = 0; i < count; i++) this.qp.postSend({ opcode: 'SEND', sges: [this.#mr.sge(0, sizeBytes)] });
  }

  async received(alive: () => void): Promise<void> {
    while (this.#received < this.#messages.count) await this.#next(alive);
  }

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

  async close(): Promise<void> {
    for (const resource of [this.qp, this.#cq, this.#mr, this.#pd]) await resource.close();
  }
}
