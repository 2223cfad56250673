import type { Clock, RandomSource } from 'rocev2/internal/core';
import { Engine, type NicOptions, type NicTuning } from 'rocev2/internal/nic';

import type { IpAddress } from 'rocev2/internal/packet';
import { type IpIdPolicy, ROCE_UDP_PORT, type RxDatagram, TxBatch } from 'rocev2/internal/port';
import { BusyTime } from './busy-time.js';
import type { EventQueue } from './event-queue.js';
import { ReservingNic } from './reserving-nic.js';
import { virtualClock } from './virtual-clock.js';
import { WakeUp } from './wake-up.js';

interface SimHostOptions extends NicTuning {
  readonly address: IpAddress;
  readonly events: EventQueue;
  readonly random: RandomSource;
  readonly pathMtuMax?: number;
  readonly ipIdPolicy?: IpIdPolicy;
  readonly receiveBudgetPackets?: number;
}

type Wire = (batch: TxBatch) => number;

export class SimHost extends Engine {
  declare readonly nic: ReservingNic;
  readonly address: IpAddress;
  onActivity: (() => void) | undefined;
  readonly #events: EventQueue;
  readonly #clock: Clock;
  readonly #batch: TxBatch;
  readonly #timer: WakeUp;
  readonly #busy: BusyTime;
  #wire: Wire = () => this.#events.nowNs;
  /** A packet is about to be sent, or is being handed to the wire. */
  #isSending = false;

  constructor(options: SimHostOptions) {
    super(
      {
        address: options.address,
        udpPort: ROCE_UDP_PORT,
        pathMtuMax: options.pathMtuMax ?? 4096,
        ipIdPolicy: options.ipIdPolicy ?? 'sequential',
        fixedSourcePort: undefined,
        receiveBudgetPackets: options.receiveBudgetPackets ?? Number.POSITIVE_INFINITY,
      },
      options.random,
      options,
    );
    this.address = options.address;
    this.#events = options.events;
    this.#clock = virtualClock(options.events);
    this.#timer = new WakeUp(options.events, () => this.#onTimer());
    this.#busy = new BusyTime(options.events, this.#send);
    this.#batch = new TxBatch(1, options.address);
  }

  protected override makeNic(options: NicOptions): ReservingNic {
    return new ReservingNic(options);
  }

  override get portDescription(): string {
    return `simulated port ${this.address}`;
  }

  connect(wire: Wire): void {
    this.#wire = wire;
  }

  receive(datagram: RxDatagram): void {
    this.nic.receive(datagram, this.#events.nowNs);
    this.onActivity?.();
    this.pollSoon();
  }

  pause(priority: number, durationNs: number): void {
    this.nic.pause(priority, durationNs, this.#events.nowNs);
    this.pollSoon();
  }

  override async resolve(): Promise<boolean> {
    return false;
  }

  override async close(): Promise<void> {}

  override nowNs(): number {
    return this.#events.nowNs;
  }

  override wakeAt(timeNs: number, wake: () => void): () => void {
    return this.#clock.wakeAt(timeNs, wake);
  }

  protected override pollSoon(): void {
    if (!this.#isSending && this.nic.hasWork) {
      if (this.#busy.isOver) {
        this.#isSending = true;
        this.#events.after(0, this.#send);
      } else this.#busy.await();
    }
    this.#timer.notAfter(this.nic.nextDeadlineNs);
  }

  /** One datagram at a time: what arrives while it is on the wire may change what comes next. */
  readonly #send = (): void => {
    const batch = this.#batch;
    batch.count = 0;
    this.#isSending = false;
    if (this.nic.transmit(batch, this.#events.nowNs) > 0) {
      this.#isSending = true;
      this.#busy.begin(this.#wire(batch));
      this.#isSending = false;
      if (this.nic.hasWork) this.#busy.await();
      this.#timer.notAfter(this.nic.nextDeadlineNs);
    } else this.pollSoon();
  };

  #onTimer(): void {
    this.nic.onDeadline(this.#events.nowNs);
    this.onActivity?.();
    this.pollSoon();
  }
}
