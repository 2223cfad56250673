/**
 * Pause frames are its own: received ones end here, ours begin here. Invariant: a frame that was admitted leaves by
 * `take` or is counted as dropped, and its memory is given back at that moment.
 */

import type { RandomSource } from 'rocev2/internal/core';
import {
  ECN_CE,
  ECN_NOT_ECT,
  ETHERNET_LINK_BYTES,
  PFC_FRAME_BYTES,
  PfcFrame,
  PRIORITIES,
  parsePfc,
  readEcn,
  writeCe,
  writePfc,
} from 'rocev2/internal/packet';
import { layOutBuffer } from './buffer-layout.js';
import { ADMITTED, type BufferPolicy, DROP_COUNTERS, PacketLimit } from './buffer-policy.js';
import { EgressMarking, KEEP, MARK } from './egress-marking.js';
import { EgressQueues } from './egress-queues.js';
import { FlowControl } from './flow-control.js';
import { FramePool } from './frame-pool.js';
import { FrameTrimmer } from './frame-trimmer.js';
import { type Departure, IntStamper } from './int-stamper.js';
import { portMac } from './pause-sender.js';
import { ReadyPorts } from './ready-ports.js';
import { Scheduler } from './scheduler.js';
import { SharedBuffer } from './shared-buffer.js';
import type { SwitchConfig, SwitchPortConfig } from './switch-config.js';
import { countPauses, type SwitchPortCounters } from './switch-counters.js';
import { type SwitchSnapshot, takeSnapshot } from './switch-snapshot.js';

const ALL_PRIORITIES = 0xff;
export const QUEUE_PACKETS = 1024;
const SLOTS_MAX = 4096;
const SLOTS_MAX_WITH_BUFFER = 2 ** 20;

export class TrafficManager {
  readonly pool: FramePool;
  readonly queues: EgressQueues;
  readonly flowControl: FlowControl;
  readonly ready: ReadyPorts;
  readonly #counters: readonly SwitchPortCounters[];
  readonly #slotsMax: number;
  readonly #scheduler: Scheduler;
  readonly #buffer: BufferPolicy;
  readonly #marking: EgressMarking;
  readonly #stamper: IntStamper;
  readonly #trimmer: FrameTrimmer;
  readonly #departure: Departure = { bytes: new Uint8Array(0), length: 0, ipOffset: 0, queueBytes: 0, sentBytes: 0 };
  readonly #blocked: Uint8Array;
  #usedSlots = 0;
  readonly #macs: readonly Uint8Array[];
  readonly #pfc = new PfcFrame();

  constructor(
    config: SwitchConfig & { readonly random?: RandomSource | undefined; readonly pool?: FramePool | undefined },
    ports: readonly SwitchPortConfig[],
    counters: readonly SwitchPortCounters[],
    frameBytesMax: number,
  ) {
    const buffer = config.buffer ?? (config.pfc === undefined ? undefined : {});
    this.#counters = counters;
    this.#trimmer = new FrameTrimmer(config.trim);
    this.#slotsMax = config.bufferPackets ?? (buffer === undefined ? SLOTS_MAX : SLOTS_MAX_WITH_BUFFER);
    this.pool = config.pool ?? new FramePool(frameBytesMax);
    this.queues = new EgressQueues(ports.length, this.pool);
    this.ready = new ReadyPorts(ports.length);
    this.#scheduler = new Scheduler(ports.length, this.queues, config.scheduling ?? {});
    this.flowControl = new FlowControl(config.pfc, ports, (port) => this.ready.add(port), {
      begin: (port) => counters[port].pfcwd_storms++,
      end: (port) => counters[port].pfcwd_restored++,
      discard: (port, priority) => this.#discard(port, priority),
    });
    this.#buffer =
      buffer === undefined
        ? new PacketLimit(
            this.queues,
            config.queuePackets ?? QUEUE_PACKETS,
            config.trim === undefined ? -1 : this.#trimmer.priority,
          )
        : new SharedBuffer(
            layOutBuffer(buffer, config.pfc?.priorities ?? [], ports, frameBytesMax),
            this.queues,
            this.flowControl.sender,
          );
    this.#marking = new EgressMarking(
      ports.map((port) => (port.ecn === undefined ? config.ecn : (port.ecn ?? undefined))),
      config.random,
    );
    this.#stamper = new IntStamper(config.int ?? {}, ports, config.random);
    this.#blocked = new Uint8Array(ports.length);
    this.#macs = ports.map((_, port) => portMac(port));
  }

  /** Slots of the pool that belong to this switch, those of taken frames included. */
  get usedSlots(): number {
    return this.#usedSlots;
  }

  /** False: the packet memory is full, and the frame counts as dropped. */
  hasRoom(egress: number): boolean {
    if (this.#usedSlots < this.#slotsMax) return true;
    this.#counters[egress].tx_dropped_buffer_full++;
    return false;
  }

  /** The frame in `slot` belongs to this switch from now on. Only after {@link hasRoom}. */
  own(slot: number, ingress: number, priority: number, ipOffset: number): void {
    const { pool } = this;
    this.#usedSlots++;
    pool.ingress[slot] = ingress;
    pool.priority[slot] = priority;
    pool.ipOffset[slot] = ipOffset;
  }

  /** The frame in `slot` belongs to somebody else from now on. */
  disown(): void {
    this.#usedSlots--;
  }

  release(slot: number): void {
    this.#usedSlots--;
    this.pool.release(slot);
  }

  admit(egress: number, slot: number, nowNs: number): boolean {
    const { pool, queues } = this;
    const counters = this.#counters[egress];
    const ingress = pool.ingress[slot];
    const priority = pool.priority[slot];
    const bytes = pool.lengths[slot];
    if (this.flowControl.isDropping(egress, priority)) {
      counters.tx_dropped_watchdog++;
      this.release(slot);
      return false;
    }
    const reason = this.#buffer.admit(ingress, egress, priority, bytes);
    if (reason !== ADMITTED) {
      if (this.#trim(slot)) {
        counters.tx_trimmed++;
        return this.admit(egress, slot, nowNs);
      }
      counters[DROP_COUNTERS[reason]]++;
      this.release(slot);
      return false;
    }
    const found = queues.bytes[egress * PRIORITIES + priority];
    if (!this.#mark(this.#marking.arriving(egress, priority, found, nowNs), slot, counters)) {
      this.#buffer.depart(ingress, egress, priority, bytes);
      this.release(slot);
      return false;
    }
    queues.push(egress, slot);
    this.ready.add(egress);
    return true;
  }

  #trim(slot: number): boolean {
    const { pool } = this;
    if (pool.priority[slot] === this.#trimmer.priority) return false;
    const bytes = this.#trimmer.cut(pool.bytes(slot), pool.lengths[slot], pool.ipOffset[slot]);
    if (bytes === 0) return false;
    pool.lengths[slot] = bytes;
    pool.priority[slot] = this.#trimmer.priority;
    return true;
  }

  /** The next frame to send, which then is the caller's, or -1. */
  take(port: number, nowNs: number): number {
    if (this.flowControl.sender.pending[port] !== 0) return this.#takePause(port, nowNs);
    const { pool, queues } = this;
    const counters = this.#counters[port];
    for (;;) {
      const stopped = this.#blocked[port] | this.flowControl.receiver.maskAt(port, nowNs);
      const eligible = queues.occupied[port] & ~stopped;
      if (eligible === 0) return -1;
      const priority = this.#scheduler.select(port, eligible);
      const slot = this.#shift(port, priority);
      const leftBehind = queues.bytes[port * PRIORITIES + priority];
      if (this.#mark(this.#marking.departing(port, priority, leftBehind, nowNs), slot, counters)) {
        this.#stamp(port, slot, leftBehind, nowNs);
        counters.tx_packets++;
        counters.tx_bytes += pool.lengths[slot];
        return slot;
      }
      this.release(slot);
    }
  }

  #stamp(port: number, slot: number, queueBytes: number, nowNs: number): void {
    const { pool } = this;
    if (!this.#stamper.concerns(pool.bytes(slot), pool.ipOffset[slot])) return;
    const departure = this.#departure;
    departure.bytes = pool.bytes(slot);
    departure.length = pool.lengths[slot];
    departure.ipOffset = pool.ipOffset[slot];
    departure.queueBytes = queueBytes;
    const { tx_bytes, tx_packets } = this.#counters[port];
    departure.sentBytes = tx_bytes + tx_packets * ETHERNET_LINK_BYTES;
    this.#stamper.departing(port, departure, nowNs);
  }

  receivePause(port: number, bytes: Uint8Array, offset: number, length: number, nowNs: number): void {
    const counters = this.#counters[port];
    if (!parsePfc(bytes, offset, length, this.#pfc)) {
      counters.rx_dropped_bad_pfc++;
      return;
    }
    counters.rx_pfc_packets++;
    countPauses(counters, 'rx', this.#pfc.enabled, this.#pfc.quanta);
    this.flowControl.receive(port, this.#pfc, nowNs);
  }

  block(port: number, priority: number | undefined): void {
    this.#blocked[port] |= priority === undefined ? ALL_PRIORITIES : 1 << priority;
  }

  unblock(port: number, priority: number | undefined): void {
    this.#blocked[port] &= priority === undefined ? 0 : ~(1 << priority);
    this.ready.add(port);
  }

  snapshot(names: readonly string[], nowNs: number): SwitchSnapshot {
    const { queues, flowControl } = this;
    return takeSnapshot({ names, queues, buffer: this.#buffer, flowControl, blocked: this.#blocked }, nowNs);
  }

  resetWatermarks(): void {
    this.queues.resetWatermarks();
    this.#buffer.resetWatermarks();
  }

  #takePause(port: number, nowNs: number): number {
    const counters = this.#counters[port];
    this.flowControl.sender.fill(port, this.#pfc, nowNs);
    const slot = this.pool.allocate(PFC_FRAME_BYTES);
    this.#usedSlots++;
    writePfc(this.pool.bytes(slot), 0, this.#macs[port], this.#pfc);
    counters.tx_packets++;
    counters.tx_pfc_packets++;
    counters.tx_bytes += PFC_FRAME_BYTES;
    countPauses(counters, 'tx', this.#pfc.enabled, this.#pfc.quanta);
    return slot;
  }

  #shift(port: number, priority: number): number {
    const slot = this.queues.shift(port, priority);
    this.#buffer.depart(this.pool.ingress[slot], port, priority, this.pool.lengths[slot]);
    return slot;
  }

  #mark(verdict: number, slot: number, counters: SwitchPortCounters): boolean {
    if (verdict === KEEP) return true;
    const ip = this.pool.ipOffset[slot];
    const bytes = this.pool.bytes(slot);
    const ecn = ip === 0 ? ECN_NOT_ECT : readEcn(bytes, ip);
    if (ecn === ECN_NOT_ECT) {
      if (verdict === MARK) return true;
      counters.tx_dropped_not_ect++;
      return false;
    }
    if (ecn !== ECN_CE) {
      writeCe(bytes, ip);
      counters.tx_ecn_marked++;
    }
    return true;
  }

  #discard(port: number, priority: number): void {
    while ((this.queues.occupied[port] & (1 << priority)) !== 0) {
      this.release(this.#shift(port, priority));
      this.#counters[port].tx_dropped_watchdog++;
    }
  }
}
