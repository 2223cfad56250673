/**
 * QP1, the general services interface (IBTA vol. 1 §13.5.1; carried as UD, annex A17): management datagrams to and from
 * any address. Unreliable: datagrams that do not fit the queues are dropped, as in the network.
 */

import type { RoceError } from '../core/errors.js';
import type { IpAddress } from '../packet/address.js';
import { senderInGrh } from '../packet/grh.js';
import { GRH_BYTES } from '../packet/roce.js';
import { Access } from '../verbs/access.js';
import type { AddressHandle } from '../verbs/address-handle.js';
import { type CompletionQueue, checkCompletion, type WorkCompletion } from '../verbs/completion-queue.js';
import type { RdmaDevice } from '../verbs/device.js';
import type { MemoryRegion } from '../verbs/memory-region.js';
import type { ProtectionDomain } from '../verbs/protection-domain.js';
import type { QueuePair } from '../verbs/queue-pair.js';
import { MAD_BYTES } from './messages.js';

const GSI_QPN = 1;
const GSI_QKEY = 0x8001_0000;
const SLOT_BYTES = GRH_BYTES + MAD_BYTES;
const QUEUE_DEPTH = 256;

export type MadHandler = (source: IpAddress, mad: Uint8Array) => void;

export class GsiChannel {
  dropped = 0;
  readonly #pd: ProtectionDomain;
  readonly #cq: CompletionQueue;
  readonly #qp: QueuePair;
  readonly #mr: MemoryRegion;
  readonly #onMad: MadHandler;
  readonly #dscp: number;
  readonly #handles: AddressHandle[] = [];
  readonly #sending = new Set<Promise<void>>();
  #loop: Promise<void> = Promise.resolve();
  #wakeDrained: () => void = () => {};

  private constructor(
    { pd, cq, qp, mr }: { pd: ProtectionDomain; cq: CompletionQueue; qp: QueuePair; mr: MemoryRegion },
    onMad: MadHandler,
    dscp: number,
  ) {
    this.#pd = pd;
    this.#cq = cq;
    this.#qp = qp;
    this.#mr = mr;
    this.#onMad = onMad;
    this.#dscp = dscp;
  }

  /** `onMad` gets the MAD itself, valid during the call; `dscp` is that of all datagrams it sends. */
  static async open(device: RdmaDevice, onMad: MadHandler, dscp = 0): Promise<GsiChannel> {
    const cq = await device.createCq(2 * QUEUE_DEPTH);
    const pd = await device.createPd();
    try {
      const mr = await pd.regMr(QUEUE_DEPTH * SLOT_BYTES, Access.LOCAL_WRITE);
      const depth = { maxSendWr: QUEUE_DEPTH, maxRecvWr: QUEUE_DEPTH, maxInlineBytes: MAD_BYTES };
      const qp = await pd.createQp({ type: 'GSI', sendCq: cq, ...depth });
      await qp.modify({ state: 'INIT', pkeyIndex: 0, port: 1, qkey: GSI_QKEY });
      await qp.modify({ state: 'RTR' });
      await qp.modify({ state: 'RTS', sqPsn: 0 });
      const channel = new GsiChannel({ pd, cq, qp, mr }, onMad, dscp);
      for (let slot = 0; slot < QUEUE_DEPTH; slot++) channel.#postReceive(slot);
      channel.#loop = channel.#run().catch((error: RoceError) => {
        if (error.code !== 'ERR_ROCE_CLOSED') throw error;
      });
      return channel;
    } catch (error) {
      await pd.close();
      await cq.close();
      throw error;
    }
  }

  send(to: IpAddress, mad: Uint8Array): void {
    if (this.#sending.size + this.#handles.length >= QUEUE_DEPTH) {
      this.dropped++;
      return;
    }
    const sending = this.#send(to, mad)
      .catch(() => {
        this.dropped++;
      })
      .finally(() => this.#sending.delete(sending));
    this.#sending.add(sending);
  }

  async #send(to: IpAddress, mad: Uint8Array): Promise<void> {
    const ah = await this.#pd.createAh(to, { dscp: this.#dscp });
    try {
      this.#qp.postSend({ opcode: 'SEND', inline: mad, ah, remoteQpn: GSI_QPN, remoteQkey: GSI_QKEY });
      this.#handles.push(ah);
    } catch (error) {
      await ah.close();
      throw error;
    }
  }

  #postReceive(slot: number): void {
    if (this.#qp.isClosed) return;
    this.#qp.postRecv({ wrId: slot, sges: [this.#mr.sge(slot * SLOT_BYTES, SLOT_BYTES)] });
  }

  async #run(): Promise<void> {
    for await (const wc of this.#cq) {
      // A peer may send more bytes than a MAD has; nothing else can fail on a working QP.
      if (wc.statusName === 'LOC_LEN_ERR') this.#postReceive(Number(wc.wrId));
      else if (checkCompletion(wc).opcode === 'RECV') this.#received(wc);
      else this.#sent();
    }
  }

  #sent(): void {
    void this.#handles.shift()?.close();
    if (this.#handles.length === 0) this.#wakeDrained();
  }

  #received(wc: WorkCompletion): void {
    const slot = Number(wc.wrId);
    const start = slot * SLOT_BYTES;
    const grh = this.#mr.bytes.subarray(start, start + GRH_BYTES);
    this.#onMad(senderInGrh(grh), this.#mr.bytes.subarray(start + GRH_BYTES, start + wc.byteLen));
    this.#postReceive(slot);
  }

  async close(): Promise<void> {
    await Promise.all(this.#sending);
    const drained = new Promise<void>((resolve) => {
      this.#wakeDrained = resolve;
    });
    // On a device that is closed already the loop has ended, and nothing more completes.
    if (this.#handles.length > 0) await Promise.race([drained, this.#loop]);
    await this.#pd.close();
    await this.#cq.close();
    await this.#loop;
  }
}
