/** Asynchronous events of one controller: the host's requests wait for them, or they for a request (NVMe base specification 2.0 §5.2). */

import { refuse, STATUS } from './status.js';

/** Asynchronous Event Requests that wait at a time: AERL is one less. */
export const ASYNC_EVENTS_MAX = 4;

/** An event that a host can be told of. */
export interface AsyncEvent {
  /** Bit of the Asynchronous Event Configuration feature that turns it on; 0: it is always on. */
  readonly configuration: number;
  /** Dword 0 of the completion: type, information, and the log page that says more. */
  readonly result: number;
}

/** A namespace came, went or changed: the log page of changed namespaces names it. */
export const NAMESPACE_CHANGED: AsyncEvent = { configuration: 1 << 8, result: 0x04_00_02 };
/** The ANA log page changed: a port reaches its namespaces in another way. */
export const ANA_CHANGED: AsyncEvent = { configuration: 1 << 11, result: 0x0c_03_02 };
/** Another host did something to a reservation; the log page of reservation notifications says what. */
export const RESERVATION_CHANGED: AsyncEvent = { configuration: 0, result: 0x80_00_06 };
/** The discovery log page changed. */
export const DISCOVERY_CHANGED: AsyncEvent = { configuration: 2 ** 31, result: 0x70_f0_02 };

interface Waiting {
  readonly id: number;
  readonly resolve: (result: number) => void;
  readonly reject: (error: Error) => void;
}

/** Brings requests and events together. An event of one log page is told once, until the host has read the page. */
export class AsyncEvents {
  /** Value of the Asynchronous Event Configuration feature. */
  configuration = 0;
  readonly #waiting: Waiting[] = [];
  readonly #events: AsyncEvent[] = [];
  readonly #masked = new Set<number>();

  /** Resolves with dword 0 of the completion when there is an event. Throws the status for one request too many. */
  request(id: number): Promise<number> {
    if (this.#waiting.length >= ASYNC_EVENTS_MAX) throw refuse(STATUS.ASYNC_EVENT_LIMIT);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ id, resolve, reject });
      this.#serve();
    });
  }

  /** Something happened; the host hears of it if it has turned the event on. */
  raise(event: AsyncEvent): void {
    const isOn = event.configuration === 0 || (this.configuration & event.configuration) !== 0;
    if (!isOn || this.#events.includes(event)) return;
    this.#events.push(event);
    this.#serve();
  }

  /** The host has read the log page: it can be told of the next change. */
  onLogRead(page: number): void {
    this.#masked.delete(page);
    this.#serve();
  }

  /** Ends one request as aborted; false: there is none with this command ID. */
  abort(id: number): boolean {
    const at = this.#waiting.findIndex((waiting) => waiting.id === id);
    if (at < 0) return false;
    this.#waiting.splice(at, 1)[0].reject(refuse(STATUS.ABORTED));
    return true;
  }

  /** The controller is reset: requests end, events are forgotten. */
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
