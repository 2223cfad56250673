/**
 * A UD queue pair that exchanges datagrams of one size. Each has the sender's QPN as immediate data, as udaddy's have.
 */

import { type Destination, startDatagrams } from 'rocev2/internal/cm';
import { GRH_BYTES, type IpAddress, senderInGrh } from 'rocev2/internal/packet';
import {
  Access,
  type CompletionQueue,
  checkCompletion,
  type MemoryRegion,
  type ProtectionDomain,
  type QueuePair,
  type RdmaDevice,
} from 'rocev2/internal/verbs';

const SEND_DEPTH = 64;

export interface Arrival {
  readonly source: IpAddress;
  readonly qpn: number;
}

export class DatagramEnd {
  readonly qp: QueuePair;
  readonly pd: ProtectionDomain;
  tooLong = 0;
  readonly #sendCq: CompletionQueue;
  readonly #recvCq: CompletionQueue;
  readonly #mr: MemoryRegion;
  readonly #sizeBytes: number;
  #underWay = 0;

  private constructor(
    qp: QueuePair,
    cqs: { readonly sendCq: CompletionQueue; readonly recvCq: CompletionQueue },
    mr: MemoryRegion,
    sizeBytes: number,
  ) {
    this.qp = qp;
    this.pd = qp.pd;
    this.#sendCq = cqs.sendCq;
    this.#recvCq = cqs.recvCq;
    this.#mr = mr;
    this.#sizeBytes = sizeBytes;
  }

  static async create(device: RdmaDevice, sizeBytes: number, receives: number): Promise<DatagramEnd> {
    const depth = Math.max(receives, 1);
    const sendCq = await device.createCq(SEND_DEPTH);
    const recvCq = await device.createCq(depth);
    const pd = await device.createPd();
    const slotBytes = GRH_BYTES + sizeBytes;
    const mr = await pd.regMr(slotBytes * (depth + 1), Access.LOCAL_WRITE);
    const qp = await pd.createQp({ type: 'UD', sendCq, recvCq, maxSendWr: SEND_DEPTH, maxRecvWr: depth });
    await startDatagrams(qp);
    const end = new DatagramEnd(qp, { sendCq, recvCq }, mr, sizeBytes);
    for (let slot = 0; slot < depth; slot++) end.#postReceive(slot);
    return end;
  }

  #postReceive(slot: number): void {
    const slotBytes = GRH_BYTES + this.#sizeBytes;
    this.qp.postRecv({ wrId: slot, sges: [this.#mr.sge(slot * slotBytes, slotBytes)] });
  }

  async send(count: number, destination: Destination): Promise<void> {
    const sges = [this.#mr.sge(this.#mr.length - this.#sizeBytes, this.#sizeBytes)];
    for (let i = 0; i < count; i++) {
      if (this.#underWay === SEND_DEPTH) await this.#sent();
      this.qp.postSend({ opcode: 'SEND_WITH_IMM', sges, immediate: this.qp.qpn, ...destination });
      this.#underWay++;
    }
    while (this.#underWay > 0) await this.#sent();
  }

  async #sent(): Promise<void> {
    checkCompletion(await this.#sendCq.next());
    this.#underWay--;
  }

  async next(): Promise<Arrival> {
    for (;;) {
      const wc = await this.#recvCq.next();
      const slot = Number(wc.wrId);
      if (wc.statusName === 'LOC_LEN_ERR') {
        this.tooLong++;
        this.#postReceive(slot);
        continue;
      }
      const { sourceQpn: qpn } = checkCompletion(wc);
      const start = slot * (GRH_BYTES + this.#sizeBytes);
      const source = senderInGrh(this.#mr.bytes.subarray(start, start + GRH_BYTES));
      this.#postReceive(slot);
      return { source, qpn };
    }
  }
}
