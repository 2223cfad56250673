import { setTimeout as delay } from 'node:timers/promises';
import { RoceError } from '../core/errors.js';
import { Access } from '../verbs/access.js';
import type { CompletionQueue } from '../verbs/completion-queue.js';
import type { RdmaDevice } from '../verbs/device.js';
import type { MemoryRegion } from '../verbs/memory-region.js';
import type { ProtectionDomain } from '../verbs/protection-domain.js';
import type { QueuePair } from '../verbs/queue-pair.js';
import type { FixedChannel } from './fixed-channel.js';
import { BINARY_KEYS, type KeyFormat, TEXT_KEYS } from './perftest-keys.js';
import { initializeQp } from './qp-parameters.js';

export interface PerftestWire {
  readonly keys: KeyFormat;
  readonly isOpen: boolean;
  write(message: Uint8Array): void;
  read(bytes: number, what: string, timeoutMs?: number): Promise<Buffer>;
  leave(): Promise<void>;
}

const DONE = Buffer.from('done\0');

export function tcpWire(channel: FixedChannel): PerftestWire {
  return {
    keys: TEXT_KEYS,
    get isOpen() {
      return channel.isOpen;
    },
    write: (message) => channel.write(message),
    read: (bytes, what, timeoutMs) => channel.read(bytes, what, timeoutMs),
    leave: async () => {
      channel.write(DONE);
      channel.close();
    },
  };
}

const MESSAGE_BYTES_MAX = 128;
/** The exchange never has two messages of a side in flight. */
const RECEIVES = 4;
const MESSAGE_TIMEOUT_MS = 20_000;

export class QpWire implements PerftestWire {
  readonly keys = BINARY_KEYS;
  readonly qp: QueuePair;
  readonly #pd: ProtectionDomain;
  readonly #sendCq: CompletionQueue;
  readonly #recvCq: CompletionQueue;
  readonly #receives: MemoryRegion;
  #sends = 0;

  private constructor(
    qp: QueuePair,
    pd: ProtectionDomain,
    sendCq: CompletionQueue,
    recvCq: CompletionQueue,
    receives: MemoryRegion,
  ) {
    this.qp = qp;
    this.#pd = pd;
    this.#sendCq = sendCq;
    this.#recvCq = recvCq;
    this.#receives = receives;
    for (let i = 0; i < RECEIVES; i++) this.#postReceive(i);
  }

  static async create(device: RdmaDevice): Promise<QpWire> {
    const pd = await device.createPd();
    const sendCq = await device.createCq(2 * RECEIVES);
    const recvCq = await device.createCq(2 * RECEIVES);
    const qp = await pd.createQp({ sendCq, recvCq, maxSendWr: RECEIVES, maxRecvWr: RECEIVES });
    await initializeQp(qp);
    const receives = await pd.regMr(RECEIVES * MESSAGE_BYTES_MAX, Access.LOCAL_WRITE);
    return new QpWire(qp, pd, sendCq, recvCq, receives);
  }

  get isOpen(): boolean {
    return this.qp.state === 'RTS';
  }

  write(message: Uint8Array): void {
    this.qp.postSend({ opcode: 'SEND', inline: message });
    this.#sends++;
    while (this.#sendCq.pollOne() !== undefined) this.#sends--;
  }

  async read(bytes: number, what: string, timeoutMs = MESSAGE_TIMEOUT_MS): Promise<Buffer> {
    const giveUp = new AbortController();
    const late = delay(timeoutMs, undefined, { signal: giveUp.signal }).catch(() => undefined);
    try {
      const wc = await Promise.race([this.#recvCq.next(), late]);
      const why = wc === undefined ? `nothing for ${timeoutMs / 1000} s` : wc.statusName;
      if (wc?.status !== 0) throw new RoceError('ERR_ROCE_CONNECT', `waiting for ${what}: ${why}`);
      const place = Number(wc.wrId);
      const begin = place * MESSAGE_BYTES_MAX;
      const message = Buffer.from(this.#receives.bytes.subarray(begin, begin + wc.byteLen));
      this.#postReceive(place);
      if (message.length === bytes) return message;
      throw new RoceError('ERR_ROCE_MISMATCH', `${what} has ${message.length} bytes instead of ${bytes}`);
    } finally {
      giveUp.abort();
    }
  }

  async leave(): Promise<void> {
    while (this.#sends > 0 && this.isOpen) {
      await this.#sendCq.next();
      this.#sends--;
    }
  }

  async close(): Promise<void> {
    for (const resource of [this.qp, this.#sendCq, this.#recvCq, this.#receives, this.#pd]) await resource.close();
  }

  #postReceive(place: number): void {
    this.qp.postRecv({ wrId: place, sges: [this.#receives.sge(place * MESSAGE_BYTES_MAX, MESSAGE_BYTES_MAX)] });
  }
}
