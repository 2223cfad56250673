/**
 * The NIC's end of an engine link on the application's own thread: a NIC, its rings on plain memory, and interrupts
 * that are never delivered from inside a call. Drivers add the two parts that differ: when to poll the NIC, and where
 * packets go.
 */

import type { RandomSource } from '../core/random.js';
import type { ForeignMemory } from '../memory/foreign-memory.js';
import type { MemoryMapping } from '../memory/mapped/memory-mapping.js';
import { AttachedMemory } from '../memory/ring/attached-memory.js';
import { COMMAND_DEPTH, CommandRing } from '../memory/ring/command-ring.js';
import { COUNTER, COUNTER_NAMES } from '../memory/ring/counters.js';
import type { EngineLink } from '../memory/ring/engine-link.js';
import { EVENT_DEPTH, EventRing } from '../memory/ring/event-ring.js';
import type { Protection } from '../memory/ring/protection.js';
import type { IpAddress } from '../packet/address.js';
import { Nic, type NicOptions, type NicTuning } from './nic.js';
import type { PortFacts } from './port-facts.js';

/** Above the numbers of attached arrays. */
const FIRST_FOREIGN_ID = 2 ** 31;

export abstract class Engine implements EngineLink {
  readonly nic: Nic;
  readonly commands = CommandRing.create(allocatePlain, COMMAND_DEPTH);
  readonly events = EventRing.create(allocatePlain, EVENT_DEPTH);
  readonly counters = new Float64Array(COUNTER_NAMES.length);
  onInterrupt: () => void = () => {};
  onFailure: () => void = () => {};
  readonly #memory = new AttachedMemory();
  readonly #foreign = new Map<number, ForeignMemory>();
  #nextForeignId = FIRST_FOREIGN_ID;
  #interruptPending = false;

  constructor(port: PortFacts, random: RandomSource, tuning: NicTuning = {}) {
    this.nic = this.makeNic({
      port,
      random,
      counters: this.counters,
      events: this.events,
      memory: (id) => this.#memory.get(id),
      foreignMemory: (id) => this.#foreign.get(id),
      onEvent: () => this.#interrupt(),
      tuning,
    });
  }

  protected makeNic(options: NicOptions): Nic {
    return new Nic(options);
  }

  abstract get portDescription(): string;
  abstract resolve(address: IpAddress, sharingPort?: number): Promise<boolean>;
  abstract close(): Promise<void>;
  abstract nowNs(): number;
  abstract wakeAt(timeNs: number, wake: () => void): () => void;

  get memoryDomain(): string | undefined {
    return undefined;
  }

  get mapping(): MemoryMapping | undefined {
    return undefined;
  }

  unshare(_address: IpAddress, _udpPort: number): void {}

  get protection(): Protection | undefined {
    return undefined;
  }

  pathMtuTowards(_address: IpAddress): number | undefined {
    return undefined;
  }

  refreshCounters(): void {}

  populate(_bytes: Uint8Array): void {}

  /** There is a request or an event for the NIC: it may have to send, or to be woken earlier. */
  protected abstract pollSoon(): void;

  ringCommands(): void {
    this.nic.executeCommands(this.commands, this.nowNs());
    this.pollSoon();
  }

  ringDoorbell(qpn: number): void {
    this.nic.doorbell(qpn);
    this.pollSoon();
  }

  /** All events of one poll make one interrupt. */
  #interrupt(): void {
    if (this.#interruptPending) return;
    this.#interruptPending = true;
    this.counters[COUNTER.interrupts]++;
    void Promise.resolve().then(() => {
      this.#interruptPending = false;
      this.onInterrupt();
    });
  }

  allocate(bytes: number): ArrayBufferLike {
    return allocatePlain(bytes);
  }

  reaches(): boolean {
    return true;
  }

  attach(buffer: ArrayBufferLike): number {
    return this.#memory.attach(buffer).id;
  }

  detach(id: number): void {
    this.#memory.detach(id);
  }

  /** Makes memory outside this process reachable: in `regMr`, `memory` is its number and `offsetBytes` an address. */
  attachForeign(memory: ForeignMemory): number {
    const id = this.#nextForeignId++;
    this.#foreign.set(id, memory);
    return id;
  }

  /** Its regions must be deregistered. */
  detachForeign(id: number): void {
    this.#foreign.delete(id);
  }
}

function allocatePlain(bytes: number): ArrayBufferLike {
  return new ArrayBuffer(bytes);
}
