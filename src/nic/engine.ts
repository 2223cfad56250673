/**
 * A NIC with its rings, on plain memory: what every driver that runs on the application's own thread wraps. Sans-IO like the NIC.
 */

import { RoceError } from '../core/errors.js';
import type { RandomSource } from '../core/random.js';
import { CommandRing } from '../ring/command-ring.js';
import { COUNTER_NAMES } from '../ring/counters.js';
import { EventRing } from '../ring/event-ring.js';
import { Nic, type PortFacts } from './nic.js';

const COMMAND_DEPTH = 64;
/** Enough for one completion notice per CQ and bursts of async events between two turns of the event loop. */
const EVENT_DEPTH = 4096;

export class Engine {
  readonly nic: Nic;
  readonly commands = CommandRing.create(allocatePlain, COMMAND_DEPTH);
  readonly events = EventRing.create(allocatePlain, EVENT_DEPTH);
  readonly counters = new Float64Array(COUNTER_NAMES.length);
  readonly #memory = new Map<number, { readonly buffer: ArrayBufferLike; users: number }>();
  readonly #ids = new Map<ArrayBufferLike, number>();
  #nextId = 1;

  constructor(port: PortFacts, random: RandomSource, onEvent: () => void) {
    this.nic = new Nic({
      port,
      random,
      counters: this.counters,
      events: this.events,
      memory: (id) => this.#memory.get(id)?.buffer,
      onEvent,
    });
  }

  allocate(bytes: number): ArrayBufferLike {
    return allocatePlain(bytes);
  }

  /** The same buffer attached twice has one number, and must be detached twice. */
  attach(buffer: ArrayBufferLike): number {
    const known = this.#ids.get(buffer);
    if (known !== undefined) {
      this.#memory.get(known)!.users++;
      return known;
    }
    const id = this.#nextId++;
    this.#ids.set(buffer, id);
    this.#memory.set(id, { buffer, users: 1 });
    return id;
  }

  detach(id: number): void {
    const entry = this.#memory.get(id);
    if (entry === undefined) throw new RoceError('ERR_ROCE_NOT_FOUND', 'this memory is not attached');
    entry.users--;
    if (entry.users > 0) return;
    this.#memory.delete(id);
    this.#ids.delete(entry.buffer);
  }
}

function allocatePlain(bytes: number): ArrayBufferLike {
  return new ArrayBuffer(bytes);
}
