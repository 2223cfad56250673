/**
 * The source of `dashboard --attach`: discovers programs that allow it, polls each once a second, and passes their
 * documents to the history. A slow program delays no other.
 */

import {
  askDocument,
  controlSockets,
  isMeant,
  type ProgramTarget,
  removeIfDead,
  type WatchedDocument,
} from '@rocev2/command';
import { NS_PER_S, RoceError } from 'rocev2/internal/core';
import { nowNs } from 'rocev2/internal/driver';
import type { AttachedState } from '../messages/attached.js';
import type { DashboardSource } from '../server.js';
import { AttachedHistory, type AttachedMessage } from './history.js';

const LOOK_INTERVAL_MS = 1000;
const MINUTES = 1;
const PROGRAMS_MAX = 64;
const TIMEOUT_MS = 2000;
/**
 * A program with many connections needs a while to answer, on its own event loop: it is not queried for this many times
 * that long, up to a limit.
 */
const PAUSE_FACTOR = 20;
const PAUSE_NS_MAX = 5 * NS_PER_S;

export class Attachment implements DashboardSource, AsyncDisposable {
  readonly #which: readonly string[];
  readonly #lookIntervalMs: number;
  readonly #history: AttachedHistory;
  readonly #startNs = nowNs();
  readonly #subscribers = new Set<(name: string, data: unknown) => void>();
  readonly #notBeforeNs = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;
  #isFull = false;
  #isClosed = false;

  readonly documents = { state: (): AttachedState => this.#history.state };
  readonly apply = undefined;

  readonly died: Promise<never>;
  #fail: (error: Error) => void = () => {};

  constructor(which: readonly string[], { lookIntervalMs = LOOK_INTERVAL_MS } = {}) {
    this.#which = which;
    this.#lookIntervalMs = lookIntervalMs;
    this.#history = new AttachedHistory(which);
    this.died = new Promise<never>((_, reject) => {
      this.#fail = reject;
    });
    this.died.catch(() => {});
  }

  async open(): Promise<void> {
    await this.#look();
    this.#timer = setInterval(() => void this.#look().catch(this.#fail), this.#lookIntervalMs);
  }

  subscribe(send: (name: string, data: unknown) => void): () => void {
    this.#subscribers.add(send);
    return () => this.#subscribers.delete(send);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#timer);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #look(): Promise<void> {
    const addresses = await this.#addresses();
    for (const place of this.#history.addresses) if (!addresses.includes(place)) this.#gone(place);
    for (const place of this.#notBeforeNs.keys()) if (!addresses.includes(place)) this.#notBeforeNs.delete(place);
    const now = nowNs();
    for (const place of addresses) if (now >= (this.#notBeforeNs.get(place) ?? 0)) void this.#ask(place);
  }

  async #addresses(): Promise<string[]> {
    const named = this.#which.filter(isPlace);
    const isLooking = this.#which.length === 0 || named.length < this.#which.length;
    const all = [...new Set([...named, ...(isLooking ? await controlSockets() : [])])];
    if (all.length > PROGRAMS_MAX && !this.#isFull) {
      this.#isFull = true;
      this.#tell([this.#history.note(`${all.length} programs: only ${PROGRAMS_MAX} are followed`, this.#nowNs())]);
    }
    return all.slice(0, PROGRAMS_MAX);
  }

  async #ask(place: string): Promise<void> {
    this.#notBeforeNs.set(place, Number.POSITIVE_INFINITY);
    const startNs = nowNs();
    let pauseNs = 0;
    try {
      const document = await askDocument(targetOf(place), MINUTES, TIMEOUT_MS);
      pauseNs = Math.min(PAUSE_NS_MAX, PAUSE_FACTOR * (nowNs() - startNs));
      if (!this.#isClosed && this.#isWanted(place, document)) {
        this.#tell(this.#history.read(place, document, this.#nowNs()));
      }
    } catch (error) {
      await this.#missed(place, error);
    }
    this.#notBeforeNs.set(place, nowNs() + pauseNs);
  }

  #isWanted(place: string, document: WatchedDocument): boolean {
    return this.#which.length === 0 || this.#which.some((which) => which === place || isMeant(which, document));
  }

  async #missed(place: string, error: unknown): Promise<void> {
    if (await removeIfDead(place, error)) this.#gone(place);
    else if (error instanceof RoceError && error.code === 'ERR_ROCE_CONNECT') this.#tell(this.#history.silent(place));
    else this.#gone(place);
  }

  #gone(place: string): void {
    this.#tell(this.#history.gone(place, this.#nowNs()));
  }

  #tell(messages: readonly AttachedMessage[]): void {
    for (const { name, data } of messages) for (const send of this.#subscribers) send(name, data);
  }

  #nowNs(): number {
    return nowNs() - this.#startNs;
  }
}

function isPlace(which: string): boolean {
  return which.includes('/');
}

function targetOf(place: string): ProgramTarget {
  return /^https?:/.test(place) ? { url: place } : { socketPath: place };
}
