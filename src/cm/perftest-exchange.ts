/**
 * The exchange of perftest (ib_write_bw etc.), versions 5.70 to 6.29. Every step is symmetric, with messages of known
 * size; repeated keys are the barrier. From 6.28 on, versions compare their options first; we claim to be older, and
 * they skip that.
 */

import { RoceError } from '../core/errors.js';
import type { FirstMessage } from './fixed-listener.js';
import type { PerftestKeys } from './perftest-keys.js';
import type { PerftestWire } from './perftest-wire.js';
import { pathMtuBytes, pathMtuCode } from './qp-parameters.js';

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

export const PERFTEST_FIRST_MESSAGE: FirstMessage = {
  bytes: VERSION_BYTES,
  isRight: (message) => VERSION.test(textOf(message)),
};

/** A server of version 6.06 sends numbers without meaning. */
export interface PerftestReport {
  readonly sizeBytes: bigint;
  readonly iterations: bigint;
  /** MiB/s. */
  readonly peak: number;
  /** MiB/s. */
  readonly average: number;
  readonly messageRate: number;
}

/**
 * The order of a test: keys of every queue pair; a barrier for every queue pair and `barriers` more; the traffic; where
 * there is a report a barrier and the report; then `finish`. Both sides must be able to receive before the first
 * barrier. With `-a` and `-b` there are more steps: the last of the `barriers` comes before each size where
 * `barrierEachSize` says so.
 */
const ONE_SIDED_BANDWIDTH = { barriers: 1, report: true, leavesSilently: false, barrierEachSize: false };
const LATENCY = { barriers: 2, report: false, leavesSilently: false, barrierEachSize: false };
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

export class PerftestExchange {
  readonly peerVersion: string;
  readonly cycleBufferBytes: number;
  readonly cacheLineBytes: number;
  readonly pathMtu: number;
  readonly #wire: PerftestWire;
  readonly #isClient: boolean;
  #keys: Uint8Array;
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

  get isOpen(): boolean {
    return this.#wire.isOpen;
  }

  async exchangeKeys(own: PerftestKeys): Promise<PerftestKeys> {
    this.#keys = this.#wire.keys.encode(own);
    return this.#wire.keys.parse(await this.#swap(this.#keys, 'its keys'));
  }

  async barrier(timeoutMs?: number): Promise<void> {
    this.#wire.keys.parse(await this.#swap(this.#keys, 'its readiness', timeoutMs));
  }

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
   * Server: resolves when the client has come to a barrier, which `answerBarrier`, or `finish` if it is the last one,
   * then answers. `mayBeGone`: a peer that closed without a message has also finished.
   */
  async clientIsDone(timeoutMs?: number, mayBeGone = false): Promise<void> {
    this.#peerIsDone = true;
    await this.#unlessGone(mayBeGone, async () => {
      this.#wire.keys.parse(await this.#wire.read(this.#keys.length, 'its last word', timeoutMs));
    });
  }

  answerBarrier(): void {
    this.#peerIsDone = false;
    this.#wire.write(this.#keys);
  }

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
