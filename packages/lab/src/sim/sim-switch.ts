import { PRIORITIES } from 'rocev2/internal/packet';
import type { Switch } from '../switch/switch.js';
import { pauseFrames, type SwitchPortCounters } from '../switch/switch-counters.js';
import { BusyTime } from './busy-time.js';
import type { Cable, SlotSink } from './cable.js';
import type { EventQueue } from './event-queue.js';
import { WakeUp } from './wake-up.js';

/** The engine and the cables have one pool of frames. */
export class SimSwitch {
  readonly engine: Switch;
  readonly ports: readonly string[];
  readonly #events: EventQueue;
  readonly #egresses: readonly Egress[];
  readonly #counters: readonly Readonly<SwitchPortCounters>[];
  readonly #timer: WakeUp;

  constructor(engine: Switch, ports: readonly string[], events: EventQueue, cables: readonly Cable[]) {
    this.engine = engine;
    this.ports = ports;
    this.#events = events;
    this.#timer = new WakeUp(events, () => this.#onTimer());
    this.#egresses = cables.map((cable, port) => new Egress(engine, port, events, cable, () => this.#turn()));
    const { counters } = engine;
    this.#counters = ports.map((name) => counters[name]);
  }

  sinkOf(port: number): SlotSink {
    return (slot) => {
      this.engine.receiveSlot(port, slot, this.#events.nowNs);
      this.#turn();
    };
  }

  block(port: number, priority: number | undefined): void {
    this.engine.block(port, priority);
  }

  unblock(port: number, priority: number | undefined): void {
    this.engine.unblock(port, priority);
    this.#turn();
  }

  queuedBytes(port: number): number {
    let bytes = 0;
    for (let priority = 0; priority < PRIORITIES; priority++) bytes += this.engine.queuedBytes(port, priority);
    return bytes;
  }

  markedPackets(port: number): number {
    return this.#counters[port].tx_ecn_marked;
  }

  droppedPackets(port: number): number {
    let packets = 0;
    for (const [name, count] of Object.entries(this.#counters[port])) {
      if (name.startsWith('tx_dropped_')) packets += count;
    }
    return packets;
  }

  pauseFrames(port: number): number {
    return pauseFrames(this.#counters[port], 'tx');
  }

  receivedPauseFrames(port: number): number {
    return pauseFrames(this.#counters[port], 'rx');
  }

  #turn(): void {
    for (let port = this.engine.nextReady(); port >= 0; port = this.engine.nextReady()) this.#egresses[port].kick();
    this.#timer.notAfter(this.engine.nextDeadlineNs);
  }

  #onTimer(): void {
    this.engine.onDeadline(this.#events.nowNs);
    this.#turn();
  }
}

class Egress {
  readonly #engine: Switch;
  readonly #port: number;
  readonly #events: EventQueue;
  readonly #cable: Cable;
  readonly #busy: BusyTime;

  constructor(engine: Switch, port: number, events: EventQueue, cable: Cable, onSent: () => void) {
    this.#engine = engine;
    this.#port = port;
    this.#events = events;
    this.#cable = cable;
    this.#busy = new BusyTime(events, () => {
      this.#next();
      onSent();
    });
  }

  kick(): void {
    if (this.#busy.isOver) this.#next();
    else this.#busy.await();
  }

  #next(): void {
    const engine = this.#engine;
    const slot = engine.take(this.#port, this.#events.nowNs);
    if (slot < 0) return;
    engine.handOver();
    this.#busy.begin(this.#cable.sendSlot(slot));
    if (engine.hasFrames(this.#port)) this.#busy.await();
  }
}
