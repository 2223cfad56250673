import { initializeQp } from 'rocev2/internal/cm';
import { RoceError } from 'rocev2/internal/core';
import type { IpAddress } from 'rocev2/internal/packet';
import {
  Access,
  type CompletionQueue,
  checkCompletion,
  type MemoryRegion,
  type ProtectionDomain,
  type QueuePair,
  type RdmaDevice,
} from 'rocev2/internal/verbs';
import type { Output } from './output.js';

/** Space for the longest heading of a text, `rdma-ping-2147483647: `, and its zero byte, as in rping. */
export const SIZE_MIN_BYTES = 23;
export const SIZE_MAX_BYTES = 64 * 1024 - 1;
/** Address (8), rkey (4) and length (4) of a buffer, big-endian. */
const ADVERTISEMENT_BYTES = 16;
const FIRST_LETTER = 65;
const LETTERS = 122 - FIRST_LETTER + 1;
export interface PingOptions {
  readonly server?: boolean;
  /** Size of a ping's text in bytes. */
  readonly size: number;
  readonly verbose?: boolean;
  readonly validate?: boolean;
}

export interface Tally {
  readonly peer: IpAddress;
  pings: number;
  faults: number;
  seconds: number;
}

function pingText(n: number, sizeBytes: number): Buffer {
  const text = Buffer.alloc(sizeBytes);
  const heading = text.write(`rdma-ping-${n}: `, 'latin1');
  for (let i = heading; i < sizeBytes - 1; i++) text[i] = FIRST_LETTER + ((n + i - heading) % LETTERS);
  return text;
}

export class RpingEnd {
  readonly qp: QueuePair;
  readonly #options: PingOptions;
  readonly #cq: CompletionQueue;
  readonly #pd: ProtectionDomain;
  readonly #regions: readonly MemoryRegion[];
  readonly #text: MemoryRegion;
  readonly #sink: MemoryRegion;
  readonly #outgoing: MemoryRegion;
  readonly #incoming: MemoryRegion;
  #hasMessage = false;

  private constructor(
    qp: QueuePair,
    { cq, pd }: { cq: CompletionQueue; pd: ProtectionDomain },
    regions: readonly MemoryRegion[],
    options: PingOptions,
  ) {
    this.qp = qp;
    this.#options = options;
    this.#cq = cq;
    this.#pd = pd;
    this.#regions = regions;
    [this.#text, this.#sink, this.#outgoing, this.#incoming] = regions;
  }

  static async create(device: RdmaDevice, options: PingOptions): Promise<RpingEnd> {
    const cq = await device.createCq(16);
    const pd: ProtectionDomain = await device.createPd();
    const qp = await pd.createQp({ sendCq: cq, maxSendWr: 8, maxRecvWr: 2 });
    const bufferBytes = options.server === true ? SIZE_MAX_BYTES : options.size;
    const regions = [
      await pd.regMr(bufferBytes, Access.LOCAL_WRITE | Access.REMOTE_READ),
      await pd.regMr(bufferBytes, Access.LOCAL_WRITE | Access.REMOTE_WRITE),
      await pd.regMr(ADVERTISEMENT_BYTES, Access.LOCAL_WRITE),
      await pd.regMr(ADVERTISEMENT_BYTES, Access.LOCAL_WRITE),
    ];
    await initializeQp(qp);
    const end = new RpingEnd(qp, { cq, pd }, regions, options);
    end.#postReceive();
    return end;
  }

  async close(): Promise<void> {
    for (const resource of [this.qp, this.#cq, ...this.#regions, this.#pd]) await resource.close();
  }

  async ask(tally: Tally, output: Output, size = this.#options.size): Promise<void> {
    const text = pingText(tally.pings, size);
    this.#text.bytes.set(text);
    this.#sink.bytes.fill(0);
    await this.#advertise(this.#text, size);
    await this.#message();
    await this.#advertise(this.#sink, size);
    await this.#message();
    if (this.#options.verbose === true) output.line(`ping data: ${printable(this.#sink.bytes)}`);
    if (this.#options.validate === true && !this.#sink.bytes.subarray(0, size).equals(text)) tally.faults++;
  }

  async answer(tally: Tally, output: Output): Promise<boolean> {
    if (!(await this.#messageOrEnd())) return false;
    const source = this.#advertised();
    const sge = this.#text.sge(0, source.length);
    this.qp.postSend({ opcode: 'RDMA_READ', sges: [sge], remoteAddr: source.address, rkey: source.rkey });
    await this.#completionOf('RDMA_READ');
    const text = this.#text.bytes.subarray(0, source.length);
    if (this.#options.verbose === true) output.line(`server ping data: ${printable(text)}`);
    if (this.#options.validate === true && !text.equals(pingText(tally.pings, source.length))) tally.faults++;
    await this.#advertise(this.#text);
    await this.#message();
    const sink = this.#advertised();
    const back = this.#text.sge(0, Math.min(printable(text).length + 1, sink.length));
    this.qp.postSend({ opcode: 'RDMA_WRITE', sges: [back], remoteAddr: sink.address, rkey: sink.rkey });
    await this.#completionOf('RDMA_WRITE');
    await this.#advertise(this.#text);
    return true;
  }

  #postReceive(): void {
    this.qp.postRecv({ sges: [this.#incoming.sge()] });
  }

  async #advertise(region: MemoryRegion, size = this.#options.size): Promise<void> {
    // ACKs were lost and the peer's answer has overtaken them.
    while (this.qp.sendRoom === 0) await this.#nextCompletion();
    const message = this.#outgoing.bytes;
    message.writeBigUInt64BE(region.addr, 0);
    message.writeUInt32BE(region.rkey, 8);
    message.writeUInt32BE(size, 12);
    this.qp.postSend({ opcode: 'SEND', sges: [this.#outgoing.sge()] });
  }

  #advertised(): { address: bigint; rkey: number; length: number } {
    const message = this.#incoming.bytes;
    const length = message.readUInt32BE(12);
    if (length > this.#text.length) {
      throw new RoceError(
        'ERR_ROCE_MISMATCH',
        `the client pings with ${length} bytes; the most is ${this.#text.length}`,
      );
    }
    return { address: message.readBigUInt64BE(0), rkey: message.readUInt32BE(8), length };
  }

  async #message(): Promise<void> {
    if (!(await this.#messageOrEnd())) throw disconnected();
  }

  async #messageOrEnd(): Promise<boolean> {
    while (!this.#hasMessage) if ((await this.#nextCompletion()) === undefined) return false;
    this.#hasMessage = false;
    return true;
  }

  async #completionOf(request: 'RDMA_READ' | 'RDMA_WRITE'): Promise<void> {
    for (let opcode: string | undefined = ''; opcode !== request; opcode = await this.#nextCompletion()) {
      if (opcode === undefined) throw disconnected();
    }
  }

  async #nextCompletion(): Promise<string | undefined> {
    const wc = await this.#cq.next();
    if (wc.statusName === 'WR_FLUSH_ERR') return undefined;
    const { opcode, byteLen } = checkCompletion(wc);
    if (opcode === 'RECV') {
      if (byteLen !== ADVERTISEMENT_BYTES) {
        throw new RoceError('ERR_ROCE_MISMATCH', `the peer sent a message of ${byteLen} bytes`, 'is the peer rping?');
      }
      this.#hasMessage = true;
      this.#postReceive(); // The peer does not write to the buffer again before it has our answer.
    }
    return opcode;
  }
}

function disconnected(): RoceError {
  return new RoceError('ERR_ROCE_CONNECT', 'the peer has disconnected');
}

function printable(text: Buffer): string {
  const end = text.indexOf(0);
  return text.toString('latin1', 0, end < 0 ? text.length : end);
}
