/**
 * The inline engine: turns the NIC's crank on the application's event loop. Datagrams are processed as they arrive and answered once a
 * turn, so that acknowledgements coalesce; one timer stands for all deadlines.
 */

import { performance } from 'node:perf_hooks';
import type { RandomSource } from '../core/random.js';
import { Engine } from '../nic/engine.js';
import type { IpAddress } from '../packet/address.js';
import type { Port, RxDatagram } from '../port/datagram.js';
import type { OpenPort } from './open-port.js';

/** Batches sent before the loop gets its turn: received datagrams wait in the kernel meanwhile, and their buffer is finite. */
const BATCHES_PER_TURN = 1;
const NS_PER_MS = 1e6;
/** Timers are a millisecond coarse, and a busy event loop comes later still: what a paced flow missed meanwhile it may catch up. */
const PACING_CATCH_UP_NS = 4e6;
/** setTimeout counts in 32 bits of milliseconds. */
const TIMEOUT_MS_MAX = 0x7fffffff;

export class InlineEngine extends Engine {
  readonly #opened: OpenPort;
  readonly #port: Port;
  #turnPending = false;
  #timer: NodeJS.Timeout | undefined;
  #timerNs = Number.POSITIVE_INFINITY;
  #closed = false;
  /** The clock is read once a turn. */
  #nowNs = 0;

  /** Takes over an open port; `close` closes it. */
  constructor(opened: OpenPort, random: RandomSource) {
    super(opened.port, random, { pacingCatchUpNs: PACING_CATCH_UP_NS });
    this.#opened = opened;
    this.#port = opened.port;
    this.#port.onDatagram = (datagram) => this.#receive(datagram);
  }

  override get portDescription(): string {
    return this.#port.description;
  }

  override resolve(address: IpAddress): Promise<void> {
    return this.#opened.resolve(address);
  }

  override nowNs(): number {
    return performance.now() * NS_PER_MS;
  }

  override async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await this.#opened.close();
  }

  #receive(datagram: RxDatagram): void {
    if (this.#closed) return;
    if (!this.#turnPending) this.#nowNs = this.nowNs();
    this.nic.receive(datagram, this.#nowNs);
    this.turnSoon();
  }

  protected override turnSoon(): void {
    if (this.#turnPending || this.#closed) return;
    this.#turnPending = true;
    setImmediate(this.#turn);
  }

  readonly #turn = (): void => {
    this.#turnPending = false;
    if (this.#closed) return;
    const { nic } = this;
    this.#nowNs = this.nowNs();
    if (nic.nextDeadlineNs <= this.#nowNs) nic.onDeadline(this.#nowNs);
    for (let n = 0; n < BATCHES_PER_TURN && nic.hasWork; n++) {
      const batch = this.#port.beginBatch();
      if (batch === undefined) break; // The kernel is behind: the next turn tries again.
      nic.transmit(batch, this.#nowNs);
      this.#port.sendBatch(batch);
    }
    if (nic.hasWork) this.turnSoon();
    this.#setTimer();
  };

  #setTimer(): void {
    const next = this.nic.nextDeadlineNs;
    // A timer that fires early only finds that nothing is due.
    if (next >= this.#timerNs) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#timerNs = next;
    const delayMs = Math.min(TIMEOUT_MS_MAX, Math.max(0, Math.ceil((next - this.#nowNs) / NS_PER_MS)));
    this.#timer = setTimeout(this.#onTimer, delayMs);
  }

  readonly #onTimer = (): void => {
    this.#timer = undefined;
    this.#timerNs = Number.POSITIVE_INFINITY;
    this.#turn();
  };
}
