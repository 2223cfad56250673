/**
 * A host of the simulation: the real NIC on virtual time. It is an engine link like any other, so that the verbs objects run on it
 * unchanged; commands and interrupts take no virtual time.
 */

import type { RandomSource } from '../core/random.js';
import { Engine } from '../nic/engine.js';
import type { Nic } from '../nic/nic.js';
import type { IpAddress } from '../packet/address.js';
import { type IpIdPolicy, ROCE_UDP_PORT, type RxDatagram, TxBatch } from '../port/datagram.js';
import type { CommandRing } from '../ring/command-ring.js';
import type { EngineLink } from '../ring/engine-link.js';
import type { EventRing } from '../ring/event-ring.js';
import type { EventQueue } from './event-queue.js';

export interface SimHostOptions {
  readonly address: IpAddress;
  readonly events: EventQueue;
  readonly random: RandomSource;
  /** Default 4096. */
  readonly pathMtuMax?: number;
  readonly ipIdPolicy?: IpIdPolicy;
  readonly receiveBudgetPackets?: number;
}

/** Takes one datagram off a host's hands (slot 0 of the batch) and says when the wire is free for the next. */
export type Wire = (batch: TxBatch) => number;

export class SimHost implements EngineLink {
  readonly address: IpAddress;
  readonly portDescription: string;
  onInterrupt: () => void = () => {};
  readonly #events: EventQueue;
  readonly #engine: Engine;
  readonly #batch: TxBatch;
  #wire: Wire = () => this.#events.nowNs;
  #interruptPending = false;
  #sending = false;
  #timerNs = Number.POSITIVE_INFINITY;

  constructor(options: SimHostOptions) {
    this.address = options.address;
    this.portDescription = `simulated port ${options.address}`;
    this.#events = options.events;
    this.#batch = new TxBatch(1, options.address);
    const port = {
      address: options.address,
      udpPort: ROCE_UDP_PORT,
      pathMtuMax: options.pathMtuMax ?? 4096,
      ipIdPolicy: options.ipIdPolicy ?? 'sequential',
      fixedSourcePort: undefined,
      receiveBudgetPackets: options.receiveBudgetPackets ?? Number.POSITIVE_INFINITY,
    };
    this.#engine = new Engine(port, options.random, () => this.#interrupt());
  }

  connect(wire: Wire): void {
    this.#wire = wire;
  }

  get nic(): Nic {
    return this.#engine.nic;
  }

  get commands(): CommandRing {
    return this.#engine.commands;
  }

  get events(): EventRing {
    return this.#engine.events;
  }

  get counters(): Float64Array {
    return this.#engine.counters;
  }

  allocate(bytes: number): ArrayBufferLike {
    return this.#engine.allocate(bytes);
  }

  attach(memory: ArrayBufferLike): number {
    return this.#engine.attach(memory);
  }

  detach(memoryId: number): void {
    this.#engine.detach(memoryId);
  }

  ringCommands(): void {
    this.nic.executeCommands(this.commands);
    this.#turn();
  }

  ringDoorbell(qpn: number): void {
    this.nic.doorbell(qpn);
    this.#turn();
  }

  receive(datagram: RxDatagram): void {
    this.nic.receive(datagram, this.#events.nowNs);
    this.#turn();
  }

  async resolve(): Promise<void> {}

  async close(): Promise<void> {}

  #interrupt(): void {
    if (this.#interruptPending) return;
    this.#interruptPending = true;
    void Promise.resolve().then(() => {
      this.#interruptPending = false;
      this.onInterrupt();
    });
  }

  /** After anything that may have changed what the NIC wants: to send, or to be woken. */
  #turn(): void {
    if (!this.#sending && this.nic.hasWork) {
      this.#sending = true;
      this.#events.after(0, this.#send);
    }
    this.#armTimer();
  }

  /** One datagram at a time: what arrives while it is on the wire may change what comes next. */
  readonly #send = (): void => {
    const batch = this.#batch;
    batch.count = 0;
    this.#sending = false;
    if (this.nic.transmit(batch, this.#events.nowNs) > 0) {
      this.#sending = true;
      this.#events.at(this.#wire(batch), this.#send);
      this.#armTimer();
    } else this.#turn();
  };

  #armTimer(): void {
    const next = this.nic.nextDeadlineNs;
    if (next >= this.#timerNs) return;
    this.#timerNs = next;
    this.#events.at(next, () => {
      if (this.#timerNs !== next) return; // An earlier one has been armed since.
      this.#timerNs = Number.POSITIVE_INFINITY;
      this.nic.onDeadline(this.#events.nowNs);
      this.#turn();
    });
  }
}
