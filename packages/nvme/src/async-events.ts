/** Asynchronous events of one controller (NVMe base specification 2.0 §5.2). */

import { refuse, STATUS } from './status.js';

/** AERL is one less. */
export const ASYNC_EVENTS_MAX = 4;

export interface AsyncEvent {
  /** Bit of the Asynchronous Event Configuration feature that turns it on; 0: it is always on. */
  readonly configuration: number;
  readonly result: number;
}

export const NAMESPACE_CHANGED: AsyncEvent = { configuration: 1 << 8, result: 0x04_00_02 };
export const ANA_CHANGED: AsyncEvent = { configuration: 1 << 11, result: 0x0c_03_02 };
export const RESERVATION_CHANGED: AsyncEvent = { configuration: 0, result: 0x80_00_06 };
export const DISCOVERY_CHANGED: AsyncEvent = { configuration: 2 ** 31, result: 0x70_f0_02 };

interface Waiting {
  readonly id: number;
  readonly resolve: (result: number) => void;
  readonly reject: (error: Error) => void;
}

/** An event of one log page is reported once, until the host has read the page. */
export class AsyncEvents {
  configuration = 0;
  readonly #waiting: Waiting[] = [];
  readonly #events: AsyncEvent[] = [];
  readonly #masked = new Set<number>();

  request(id: number): Promise<number> {
    if (this.#waiting.length >= ASYNC_EVENTS_MAX) throw refuse(STATUS.ASYNC_EVENT_LIMIT);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ id, resolve, reject });
      this.#serve();
    });
  }

  raise(event: AsyncEvent): void {
    const isOn = event.configuration === 0 || (this.configuration & event.configuration) !== 0;
    if (!isOn || this.#events.includes(event)) return;
    this.#events.push(event);
    this.#serve();
  }

  onLogRead(page: number): void {
    this.#masked.delete(page);
    this.#serve();
  }

  abort(id: number): boolean {
    const at = this.#waiting.findIndex((waiting) => waiting.id === id);
    if (at < 0) return false;
    this.#waiting.splice(at, 1)[0].reject(refuse(STATUS.ABORTED));
    return true;
  }

  reset(): void {
    this.configuration = 0;
    this.#events.length = 0;
    this.#masked.clear();
    for (const { reject } of this.#waiting.splice(0)) reject(refuse(STATUS.ABORTED));
  }

  #serve(): void {
    while (this.#waiting.length > 0) {
      const at = this.#events.findIndex((event) => !this.#masked.has(pageOf(event)));
      if (at < 0) return;
      const [event] = this.#events.splice(at, 1);
      this.#masked.add(pageOf(event));
      this.#waiting.shift()!.resolve(event.result);
    }
  }
}

function pageOf({ result }: AsyncEvent): number {
  return (result >>> 16) & 0xff;
}
