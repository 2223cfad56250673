/**
 * Words of an owner and clients in virtual time, without a network: every operation is executed some time after it was posted, and its result comes some
 * time after that. Clients may die or stand still at any of these moments, and their clocks need not run alike.
 */

import type { Clock } from '../../../src/core/clock.js';
import { RoceError } from '../../../src/core/errors.js';
import { type RandomSource, randomInt, SeededRandom } from '../../../src/core/random.js';
import { unpunctualClock } from '../../../test/support/unpunctual-clock.js';
import { until } from '../../../test/support/virtual-time.js';
import { EventQueue } from '../../lab/src/sim/event-queue.js';
import type { RemoteWords } from '../src/words.js';

/** An operation as it was executed. */
export interface Executed {
  readonly client: string;
  readonly atNs: number;
  readonly offset: number;
  readonly before: bigint;
  readonly after: bigint;
}

export interface OwnerOptions {
  readonly seed: number;
  /** The longest way there, and the longest way back. */
  readonly delayNsMax?: number;
}

export class SimulatedOwner {
  readonly events = new EventQueue();
  readonly words = new BigUint64Array(256);
  /** Every operation that changed a word. */
  readonly changes: Executed[] = [];
  readonly random: RandomSource;
  readonly clients: SimulatedClient[] = [];
  readonly #delayNsMax: number;
  isDead = false;

  constructor({ seed, delayNsMax = 100_000 }: OwnerOptions) {
    this.random = new SeededRandom(seed).stream('owner');
    this.#delayNsMax = delayNsMax;
  }

  /** A client whose clock runs so many times as fast as others. */
  client(name: string, rate = 1): SimulatedClient {
    const client = new SimulatedClient(this, name, rate);
    this.clients.push(client);
    return client;
  }

  delayNs(): number {
    return randomInt(this.random, 1, this.#delayNsMax);
  }

  /** The owner dies: its memory is gone, and everybody hears of it. */
  die(): void {
    this.isDead = true;
    for (const client of this.clients) client.end();
  }

  until<T>(outcome: Promise<T>): Promise<T> {
    return until(this.events, outcome);
  }

  sleep(ns: number): Promise<void> {
    return new Promise((resolve) => this.events.after(ns, resolve));
  }
}

/** A client, and its way to the words. */
export class SimulatedClient implements RemoteWords {
  readonly name: string;
  clock: Clock;
  /** Operations posted. */
  posted = 0;
  /** Dies when it posts the operation with this number. */
  diesAt = Number.POSITIVE_INFINITY;
  /** Whether the operation during which it dies is executed all the same. */
  isLastExecuted = true;
  isDead = false;
  /** Its operations are under way for so much longer. */
  lateNs = 0;
  readonly #owner: SimulatedOwner;
  readonly #onEnd = new Set<() => void>();
  #standsUntilNs = 0;

  constructor(owner: SimulatedOwner, name: string, rate: number) {
    this.#owner = owner;
    this.name = name;
    const { events } = owner;
    this.clock = {
      nowNs: () => events.nowNs * rate,
      wakeAt: (timeNs, wake) => {
        let isCancelled = false;
        events.at(Math.max(events.nowNs, timeNs / rate), () => this.#resume(() => isCancelled || wake()));
        return () => {
          isCancelled = true;
        };
      },
    };
  }

  /** From now on timers fire early, late and together. */
  fireUnpunctually(random: RandomSource): void {
    this.clock = unpunctualClock(this.clock, random);
  }

  /** The program does nothing for so long. What is under way goes on. */
  standStill(ns: number): void {
    this.#standsUntilNs = this.#owner.events.nowNs + ns;
  }

  /** Runs what belongs to the program, when it runs. */
  #resume(run: () => void): void {
    const { events } = this.#owner;
    if (this.isDead) return;
    if (events.nowNs >= this.#standsUntilNs) run();
    else events.at(this.#standsUntilNs, () => this.#resume(run));
  }

  /** Resolves some time later, when the program runs. */
  sleep(ns: number): Promise<void> {
    const { events } = this.#owner;
    return new Promise((resolve) => events.after(ns, () => this.#resume(resolve)));
  }

  end(): void {
    for (const onEnd of this.#onEnd) onEnd();
    this.#onEnd.clear();
  }

  whenEnded(onEnd: () => void): () => void {
    this.#onEnd.add(onEnd);
    return () => this.#onEnd.delete(onEnd);
  }

  fetchAdd(offset: number, add: bigint): Promise<bigint> {
    return this.#run(() => this.#change(offset, (before) => before + add));
  }

  compareSwap(offset: number, expected: bigint, desired: bigint): Promise<bigint> {
    return this.#run(() => this.#change(offset, (before) => (before === expected ? desired : before)));
  }

  read(offset: number, count: number): Promise<bigint[]> {
    return this.#run(() => [...this.#owner.words.subarray(offset / 8, offset / 8 + count)]);
  }

  write(offset: number, data: Uint8Array): Promise<void> {
    return this.#run(() => {
      Buffer.from(this.#owner.words.buffer).set(data, offset);
    });
  }

  #change(offset: number, change: (before: bigint) => bigint): bigint {
    const { words, changes, events } = this.#owner;
    const before = words[offset / 8];
    words[offset / 8] = change(before);
    const after = words[offset / 8];
    if (after !== before) changes.push({ client: this.name, atNs: events.nowNs, offset, before, after });
    return before;
  }

  #run<T>(execute: () => T): Promise<T> {
    const { events } = this.#owner;
    const isLast = this.posted++ === this.diesAt;
    if (isLast) this.isDead = true;
    return new Promise((resolve, reject) => {
      if (isLast && !this.isLastExecuted) return;
      events.after(this.lateNs + this.#owner.delayNs(), () => {
        const isThere = !this.#owner.isDead;
        const result = isThere ? execute() : undefined;
        events.after(this.#owner.delayNs(), () =>
          this.#resume(() =>
            isThere ? resolve(result as T) : reject(new RoceError('ERR_ROCE_COMPLETION', 'the owner is gone')),
          ),
        );
      });
    });
  }
}
