import { checkOneOf } from '../core/arguments.js';
import { EventEmitter } from './event-emitter.js';

/** The events of an emitter by name, with the arguments of their listeners. */
type EventMap<T> = { [K in keyof T]: unknown[] };

/** Events that every emitter of Node.js has; `once` of `node:events` listens for errors. */
const OWN_EVENTS = ['error', 'newListener', 'removeListener'];

/** An emitter of the events of `T` and of no others: a listener for another name is refused at the call. */
export class TypedEvents<T extends EventMap<T>> extends EventEmitter {
  readonly #names: readonly string[];

  /** @internal */
  constructor(names: { readonly [K in keyof T]-?: true }) {
    super();
    this.#names = Object.keys(names);
  }

  /** Calls `listener` at each event. Throws ERR_ROCE_UNKNOWN_NAME for an event that this object does not have. */
  override on<E extends keyof T & string>(event: E, listener: (...values: T[E]) => void): this {
    this.#check(event);
    return super.on(event, listener as (...values: unknown[]) => void);
  }

  /** The same as {@link on}. */
  override addListener<E extends keyof T & string>(event: E, listener: (...values: T[E]) => void): this {
    return this.on(event, listener);
  }

  /** Calls `listener` at the next event. Throws as {@link on}. */
  override once<E extends keyof T & string>(event: E, listener: (...values: T[E]) => void): this {
    return super.once(event, listener as (...values: unknown[]) => void);
  }

  /** As {@link on}, before the listeners that are there. */
  override prependListener<E extends keyof T & string>(event: E, listener: (...values: T[E]) => void): this {
    this.#check(event);
    return super.prependListener(event, listener as (...values: unknown[]) => void);
  }

  /** As {@link once}, before the listeners that are there. */
  override prependOnceListener<E extends keyof T & string>(event: E, listener: (...values: T[E]) => void): this {
    return super.prependOnceListener(event, listener as (...values: unknown[]) => void);
  }

  /** Removes a listener. */
  override off<E extends keyof T & string>(event: E, listener: (...values: T[E]) => void): this {
    return super.off(event, listener as (...values: unknown[]) => void);
  }

  /** Calls the listeners of an event. Returns whether it has any. */
  override emit<E extends keyof T & string>(event: E, ...values: T[E]): boolean {
    return super.emit(event, ...values);
  }

  #check(event: unknown): void {
    if (!OWN_EVENTS.includes(event as string)) checkOneOf('the event', event, this.#names);
  }
}
