/**
 * The exchange of perftest (ib_write_bw and its relatives), as versions 5.70 to 6.29 speak it. Every step is symmetric: the client
 * writes and then reads, the server reads and then writes, messages of known size. The keys of a queue pair, sent again, are the barrier.
 *
 * From 6.28 on two versions that can compare their options first; we say that we are older, and they go on without. What the tools do
 * differs only in the number of barriers: see `PERFTEST_TOOLS`.
 */

import { RoceError } from '../core/errors.js';
import type { FirstMessage } from './fixed-listener.js';
import type { PerftestKeys } from './perftest-keys.js';
import type { PerftestWire } from './perftest-wire.js';
import { pathMtuBytes, pathMtuCode } from './qp-parameters.js';

/** Where perftest listens unless told otherwise. */
export const PERFTEST_TCP_PORT = 18515;

const VERSION_BYTES = 16;
/** The oldest version perftest itself still talks to. */
const VERSION_MIN = 5.7;
/** What we say we are: older than those that compare options. */
const VERSION_OWN = '6.20';
const VERSION = /^\d+\.\d+/;
const INTEGER_BYTES = 4;
const MTU_BYTES = 2;
const CACHE_LINE_BYTES = 64;
const PAGE_BYTES = 4096;

/** The client's version. */
export const PERFTEST_FIRST_MESSAGE: FirstMessage = {
  bytes: VERSION_BYTES,
  isRight: (message) => VERSION.test(textOf(message)),
};

/** What a bandwidth test tells the other side at its end. A server of version 6.06 sends numbers without meaning. */
export interface PerftestReport {
  /** Bytes of one message. */
  readonly sizeBytes: bigint;
  /** Messages. */
  readonly iterations: bigint;
  /** MiB/s. */
  readonly peak: number;
  /** MiB/s. */
  readonly average: number;
  /** Millions a second. */
  readonly messageRate: number;
}

/**
 * The order of a test: keys of every queue pair; a barrier for every queue pair and `barriers` more; the traffic; where there is a report a
 * barrier and the report; then `finish`. Both sides must be able to receive before the first barrier. With `-a` and `-b` there are more
 * steps: the last of the `barriers` comes before each size where `barrierEachSize` says so.
 */
const ONE_SIDED_BANDWIDTH = { barriers: 1, report: true, leavesSilently: false, barrierEachSize: false };
const LATENCY = { barriers: 2, report: false, leavesSilently: false, barrierEachSize: false };
/** The steps of each tool's test, by the tool's name without `ib_`. */
export const PERFTEST_TOOLS = {
  write_bw: ONE_SIDED_BANDWIDTH,
  read_bw: ONE_SIDED_BANDWIDTH,
  atomic_bw: ONE_SIDED_BANDWIDTH,
  send_bw: { barriers: 2, report: false, leavesSilently: false, barrierEachSize: true },
  /** Version 6.06 ends it without the last barrier. */
  write_lat: { ...LATENCY, leavesSilently: true },
  read_lat: LATENCY,
  send_lat: { ...LATENCY, barrierEachSize: true },
  atomic_lat: LATENCY,
} as const;

/** One side of the exchange, step by step in the order of its methods. All of them reject with ERR_ROCE_CONNECT when the peer goes away. */
export class PerftestExchange {
  /** As the peer says it, `6.06`. */
  readonly peerVersion: string;
  /** Both sides' buffers are at least so long. */
  readonly cycleBufferBytes: number;
  /** Of both sides the larger one. */
  readonly cacheLineBytes: number;
  /** In bytes: the smaller one of both sides'. */
  readonly pathMtu: number;
  readonly #wire: PerftestWire;
  readonly #isClient: boolean;
  /** What a barrier sends. */
  #keys: Uint8Array;
  /** Server: the client has come to the last barrier. */
  #peerIsDone = false;

  private constructor(
    wire: PerftestWire,
    isClient: boolean,
    terms: { peerVersion: string; cycleBufferBytes: number; cacheLineBytes: number; pathMtu: number },
  ) {
    this.#wire = wire;
    this.#keys = wire.keys.blank;
    this.#isClient = isClient;
    this.peerVersion = terms.peerVersion;
    this.cycleBufferBytes = terms.cycleBufferBytes;
    this.cacheLineBytes = terms.cacheLineBytes;
    this.pathMtu = terms.pathMtu;
  }

  /** Agrees on what both sides must have in common. Rejects with ERR_ROCE_MISMATCH for a peer that is not perftest, or too old. */
  static async open(
    wire: PerftestWire,
    role: 'client' | 'server',
    own: { readonly pathMtu: number },
  ): Promise<PerftestExchange> {
    const isClient = role === 'client';
    const ask = (message: Uint8Array, what: string) => swap(wire, isClient, message, what);
    const peerVersion = textOf(await ask(padded(VERSION_OWN, VERSION_BYTES), 'its version'));
    if (!VERSION.test(peerVersion)) throw new RoceError('ERR_ROCE_MISMATCH', 'the peer is not perftest');
    if (Number.parseFloat(peerVersion) < VERSION_MIN) {
      throw new RoceError(
        'ERR_ROCE_MISMATCH',
        `perftest ${peerVersion} is too old`,
        `it must be ${VERSION_MIN.toFixed(2)} or later`,
      );
    }
    const cycleBufferBytes = Math.max(PAGE_BYTES, integerOf(await ask(integer(PAGE_BYTES), 'its page size')));
    const cacheLineBytes = Math.max(
      CACHE_LINE_BYTES,
      integerOf(await ask(integer(CACHE_LINE_BYTES), 'its cache line')),
    );
    const mtuCode = Number.parseInt(
      textOf(await ask(padded(`${pathMtuCode(own.pathMtu)}`, MTU_BYTES), 'its path MTU')),
      10,
    );
    if (!(mtuCode >= 1 && mtuCode <= 5))
      throw new RoceError('ERR_ROCE_MISMATCH', `the peer's path MTU has code ${mtuCode}`);
    const pathMtu = Math.min(own.pathMtu, pathMtuBytes(mtuCode));
    return new PerftestExchange(wire, isClient, { peerVersion, cycleBufferBytes, cacheLineBytes, pathMtu });
  }

  /** False once the peer is gone. */
  get isOpen(): boolean {
    return this.#wire.isOpen;
  }

  /** Tells of our QP and learns of the peer's. Rejects with ERR_ROCE_MISMATCH for keys that are none. */
  async exchangeKeys(own: PerftestKeys): Promise<PerftestKeys> {
    this.#keys = this.#wire.keys.encode(own);
    return this.#wire.keys.parse(await this.#swap(this.#keys, 'its keys'));
  }

  /** Returns when both sides have come here; the peer may need up to `timeoutMs`. */
  async barrier(timeoutMs?: number): Promise<void> {
    this.#wire.keys.parse(await this.#swap(this.#keys, 'its readiness', timeoutMs));
  }

  /** Tells the own result and learns of the peer's, whose numbers may be without meaning; it may need up to `timeoutMs` to come to it. */
  async exchangeReport(own: PerftestReport, timeoutMs?: number): Promise<PerftestReport> {
    const whole = async (value: bigint) => (await this.#swap(u64(value), 'its report', timeoutMs)).readBigUInt64BE();
    const real = async (value: number) => (await this.#swap(f64(value), 'its report')).readDoubleBE();
    return {
      sizeBytes: await whole(own.sizeBytes),
      iterations: await whole(own.iterations),
      peak: await real(own.peak),
      average: await real(own.average),
      messageRate: await real(own.messageRate),
    };
  }

  /**
   * Server: resolves when the client has come to a barrier, which `answerBarrier`, or `finish` if it is the last one, then answers. `mayBeGone`: a peer that left without a word has
   * done its part, too.
   */
  async clientIsDone(timeoutMs?: number, mayBeGone = false): Promise<void> {
    this.#peerIsDone = true;
    await this.#unlessGone(mayBeGone, async () => {
      this.#wire.keys.parse(await this.#wire.read(this.#keys.length, 'its last word', timeoutMs));
    });
  }

  /** Server: answers a barrier to which the client has come, and goes on. */
  answerBarrier(): void {
    this.#peerIsDone = false;
    this.#wire.write(this.#keys);
  }

  /** The last barrier, and good-bye. `mayBeGone` as for `clientIsDone`. */
  async finish(timeoutMs?: number, mayBeGone = false): Promise<void> {
    if (this.#peerIsDone) this.#wire.write(this.#keys);
    else await this.#unlessGone(mayBeGone, () => this.barrier(timeoutMs));
    await this.#wire.leave();
  }

  async #unlessGone(mayBeGone: boolean, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (!mayBeGone || this.#wire.isOpen) throw error;
    }
  }

  #swap(message: Uint8Array, what: string, timeoutMs?: number): Promise<Buffer> {
    return swap(this.#wire, this.#isClient, message, what, timeoutMs);
  }
}

/** One step: both sides send a message of the same length. */
async function swap(
  wire: PerftestWire,
  isClient: boolean,
  message: Uint8Array,
  what: string,
  timeoutMs?: number,
): Promise<Buffer> {
  if (isClient) wire.write(message);
  const answer = await wire.read(message.length, what, timeoutMs);
  if (!isClient) wire.write(message);
  return answer;
}

function padded(text: string, bytes: number): Uint8Array {
  const message = new Uint8Array(bytes);
  message.set(Buffer.from(text));
  return message;
}

function textOf(message: Buffer): string {
  return message.toString('latin1').replace(/\0.*$/s, '');
}

function integer(value: number): Buffer {
  const message = Buffer.alloc(INTEGER_BYTES);
  message.writeInt32BE(value);
  return message;
}

function integerOf(message: Buffer): number {
  return message.readInt32BE();
}

function u64(value: bigint): Buffer {
  const message = Buffer.alloc(8);
  message.writeBigUInt64BE(value);
  return message;
}

function f64(value: number): Buffer {
  const message = Buffer.alloc(8);
  message.writeDoubleBE(value);
  return message;
}
