/**
 * The PFC watchdog with SONiC's semantics: a queue whose neighbour keeps it paused without a gap, whether or not
 * anything waits in it, is in a storm; when no pause frame has come for a while, it is normal again. Both are seen at
 * polls, on a fixed grid of time. Polls happen only while a queue is paused or in a storm.
 */

import { RoceError } from 'rocev2/internal/core';
import { PRIORITIES } from 'rocev2/internal/packet';
import type { EgressPause } from './egress-pause.js';
import type { WatchdogConfig } from './switch-config.js';

const DEFAULT_NS = 200e6;

export interface StormHandler {
  begin(port: number, priority: number): void;
  end(port: number, priority: number): void;
}

export class PfcWatchdog {
  nextPollNs: number = Number.POSITIVE_INFINITY;
  readonly storms: Uint8Array;
  readonly #priorities: readonly number[];
  readonly #detectNs: number;
  readonly #restoreNs: number;
  readonly #pollNs: number;
  readonly #pauses: EgressPause;
  readonly #handler: StormHandler;

  constructor(
    ports: number,
    priorities: readonly number[],
    config: WatchdogConfig,
    pauses: EgressPause,
    handler: StormHandler,
  ) {
    this.storms = new Uint8Array(ports);
    this.#priorities = priorities;
    this.#detectNs = config.detectNs ?? DEFAULT_NS;
    this.#restoreNs = config.restoreNs ?? DEFAULT_NS;
    this.#pollNs = config.pollNs ?? Math.min(DEFAULT_NS, this.#detectNs, this.#restoreNs);
    if (!(this.#pollNs > 0 && this.#pollNs <= Math.min(this.#detectNs, this.#restoreNs))) {
      throw new RoceError(
        'ERR_ROCE_OUT_OF_RANGE',
        `a watchdog cannot look every ${this.#pollNs} ns for storms of ${this.#detectNs} and calms of ${this.#restoreNs}`,
        'pollNs is more than 0 and at most the two others',
      );
    }
    this.#pauses = pauses;
    this.#handler = handler;
  }

  wake(nowNs: number): void {
    if (this.nextPollNs === Number.POSITIVE_INFINITY) this.#schedule(nowNs);
  }

  poll(nowNs: number): void {
    if (nowNs < this.nextPollNs) return;
    let watching = false;
    for (let port = 0; port < this.storms.length; port++) {
      for (const priority of this.#priorities) if (this.#look(port, priority, nowNs)) watching = true;
    }
    if (watching) this.#schedule(nowNs);
    else this.nextPollNs = Number.POSITIVE_INFINITY;
  }

  #look(port: number, priority: number, nowNs: number): boolean {
    const bit = 1 << priority;
    const queue = port * PRIORITIES + priority;
    if ((this.storms[port] & bit) === 0) {
      if (!this.#pauses.isPaused(port, priority, nowNs)) return false;
      if (nowNs - this.#pauses.sinceNs[queue] >= this.#detectNs) {
        this.storms[port] |= bit;
        this.#handler.begin(port, priority);
      }
      return true;
    }
    if (nowNs - this.#pauses.askedNs[queue] < this.#restoreNs) return true;
    this.storms[port] &= ~bit;
    this.#handler.end(port, priority);
    return this.#pauses.isPaused(port, priority, nowNs);
  }

  #schedule(nowNs: number): void {
    this.nextPollNs = (Math.floor(nowNs / this.#pollNs) + 1) * this.#pollNs;
  }
}
