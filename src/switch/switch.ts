/**
 * A learning Ethernet switch (IEEE 802.1Q clause 8, one VLAN; tags pass unread), sans-IO: a driver hands frames in with `receive` and
 * takes them out with `take`, whether it is made of sockets or of virtual time.
 *
 * Invariants: a frame never leaves by the port it came in on; frames from one port to another keep their order, except those a
 * reorder rule holds back; every frame and every copy is accounted for (see SwitchPortCounters).
 */

import { RoceError } from '../core/errors.js';
import { type FaultPlan, flipBit } from '../faults/fault-plan.js';
import { type FaultSubject, newFaultSubject, readBth } from '../faults/fault-subject.js';
import { FAULT_CORRUPT, FAULT_DELAY, FAULT_DROP, FAULT_DUPLICATE } from '../faults/grammar.js';
import { HeldBack } from '../faults/held-back.js';
import { ETHERNET_BYTES, MAC_BYTES } from '../packet/ethernet.js';
import { FRAME_OK, FrameInfo, parseFrame } from '../packet/frame.js';
import { ROCE_UDP_PORT } from '../port/datagram.js';
import { EgressQueue } from './egress-queue.js';
import { FRAME_BYTES_MAX, FramePool } from './frame-pool.js';
import { MacTable, macNumber } from './mac-table.js';
import { newSwitchPortCounters, type SwitchPortCounters } from './switch-counters.js';

export interface SwitchOptions {
  /** Names of the ports, as fault rules and counters call them; a port's number is its place here. */
  readonly ports: readonly string[];
  readonly faults?: FaultPlan;
  /** Frames that may wait at one egress; further ones are dropped. Default 1024. */
  readonly queuePackets?: number;
  /** Frames in the whole switch, queued or taken and not yet released. Default 4096. */
  readonly bufferPackets?: number;
  /** Default 4096. */
  readonly macTableEntries?: number;
  /** How long a silent station is remembered. Default 300 s. */
  readonly macAgeNs?: number;
}

const GROUP_BIT = 1;
/** 01-80-C2-00-00-00 without its last four bits. */
const LINK_LOCAL_GROUP = 0x0180c2000000;
const FLOOD = -1;

class SwitchPort {
  readonly name: string;
  readonly counters: SwitchPortCounters = newSwitchPortCounters();
  readonly queue: EgressQueue;
  readonly held: HeldBack<number>;

  constructor(name: string, queuePackets: number, release: (port: SwitchPort, slot: number) => void) {
    this.name = name;
    this.queue = new EgressQueue(queuePackets);
    this.held = new HeldBack((slot) => release(this, slot));
  }
}

export class Switch {
  readonly #ports: readonly SwitchPort[];
  readonly #faults: FaultPlan | undefined;
  readonly #pool: FramePool;
  readonly #macs: MacTable;
  readonly #frame = new FrameInfo();
  readonly #subject: FaultSubject = newFaultSubject();

  /** Throws ERR_ROCE_INVALID_ARGUMENT when port names are missing, repeated, or cannot be written in a fault rule. */
  constructor(options: SwitchOptions) {
    const names = options.ports;
    if (names.length < 2 || new Set(names).size !== names.length || names.some((name) => !/^[\w.-]+$/.test(name))) {
      throw new RoceError(
        'ERR_ROCE_INVALID_ARGUMENT',
        `a switch cannot have the ports [${names.join(', ')}]`,
        'give two or more different names of letters, digits, dots, dashes and underscores',
      );
    }
    this.#ports = names.map(
      (name) => new SwitchPort(name, options.queuePackets ?? 1024, (port, slot) => this.#push(port, slot)),
    );
    this.#faults = options.faults;
    this.#pool = new FramePool(options.bufferPackets ?? 4096);
    this.#macs = new MacTable(options.macTableEntries ?? 4096, options.macAgeNs ?? 300e9);
  }

  /** By port name. The objects are live; do not change them. */
  get counters(): Readonly<Record<string, Readonly<SwitchPortCounters>>> {
    return Object.fromEntries(this.#ports.map((port) => [port.name, port.counters]));
  }

  /** Stations in the MAC table, aged ones included. */
  get stations(): number {
    return this.#macs.size;
  }

  /** Frames that occupy the packet buffer. */
  get bufferedPackets(): number {
    return this.#pool.used;
  }

  /**
   * Takes in one frame without check sequence. The bytes are copied; they may be reused when the call returns. Whatever they are,
   * nothing is thrown.
   */
  receive(port: number, bytes: Uint8Array, offset: number, length: number, nowNs: number): void {
    const counters = this.#ports[port].counters;
    counters.rx_packets++;
    counters.rx_bytes += length;
    if (length < ETHERNET_BYTES) {
      counters.rx_dropped_too_short++;
      return;
    }
    if (length > FRAME_BYTES_MAX) {
      counters.rx_dropped_too_long++;
      return;
    }
    if ((bytes[offset + MAC_BYTES] & GROUP_BIT) !== 0) {
      counters.rx_dropped_source_multicast++;
      return;
    }
    this.#macs.learn(macNumber(bytes, offset + MAC_BYTES), port, nowNs);
    const destination = macNumber(bytes, offset);
    if (destination - (destination & 0xf) === LINK_LOCAL_GROUP) {
      counters.rx_dropped_link_local++;
      return;
    }
    const isGroup = (bytes[offset] & GROUP_BIT) !== 0;
    const egress = isGroup ? FLOOD : this.#macs.lookup(destination, nowNs);
    if (egress === port) {
      counters.rx_dropped_same_port++;
      return;
    }
    const isRoce = this.#faults !== undefined && this.#readSubject(bytes, offset, length);
    if (egress !== FLOOD) {
      counters.rx_forwarded++;
      this.#forward(port, egress, bytes, offset, length, isRoce);
      return;
    }
    counters.rx_flooded++;
    for (let other = 0; other < this.#ports.length; other++) {
      if (other !== port) this.#forward(port, other, bytes, offset, length, isRoce);
    }
  }

  /** Frames waiting at an egress. */
  queued(port: number): number {
    return this.#ports[port].queue.length;
  }

  /**
   * The next frame to send from `port`, as a slot number, or -1. The caller owns the slot, with its bytes in {@link frame}, until it
   * calls {@link release}.
   */
  take(port: number): number {
    const { queue, counters } = this.#ports[port];
    const slot = queue.shift();
    if (slot >= 0) {
      counters.tx_packets++;
      counters.tx_bytes += this.#pool.length(slot);
    }
    return slot;
  }

  /** The bytes of a taken frame. */
  frame(slot: number): Uint8Array {
    return this.#pool.view(slot);
  }

  release(slot: number): void {
    this.#pool.release(slot);
  }

  #readSubject(bytes: Uint8Array, offset: number, length: number): boolean {
    const frame = this.#frame;
    if (parseFrame(bytes, offset, length, frame) !== FRAME_OK || frame.destinationPort !== ROCE_UDP_PORT) return false;
    this.#subject.ipId = frame.family === 4 ? frame.ipId : -1;
    return readBth(this.#subject, bytes, frame.payloadOffset, frame.payloadBytes);
  }

  /** One copy to one egress, through the fault rules if it is a RoCE packet (then `#subject` and `#frame` describe it). */
  #forward(ingress: number, egress: number, bytes: Uint8Array, offset: number, length: number, isRoce: boolean): void {
    const port = this.#ports[egress];
    if (this.#faults === undefined || !isRoce) {
      this.#enqueue(port, bytes, offset, length);
      return;
    }
    this.#subject.ingress = this.#ports[ingress].name;
    this.#subject.egress = port.name;
    const { action, bit, behind } = this.#faults.decide(this.#subject);
    if (action === FAULT_DROP) {
      port.counters.tx_dropped_fault++;
      return;
    }
    if (action === FAULT_DELAY) {
      this.#hold(port, bytes, offset, length, behind);
      return;
    }
    if (action === FAULT_DUPLICATE) {
      port.counters.faults_duplicated++;
      this.#enqueue(port, bytes, offset, length);
    }
    const slot = this.#enqueue(port, bytes, offset, length);
    if (action === FAULT_CORRUPT && slot >= 0) {
      port.counters.faults_corrupted++;
      flipBit(this.#pool.view(slot), this.#frame.payloadOffset - offset, bit);
    }
    port.held.passed();
  }

  #hold(port: SwitchPort, bytes: Uint8Array, offset: number, length: number, behind: number): void {
    const slot = this.#store(port, bytes, offset, length);
    if (slot < 0) return;
    port.counters.faults_delayed++;
    if (!port.held.hold(slot, behind)) this.#push(port, slot);
  }

  /** Copies the frame to the end of the egress queue. Returns its slot, or -1 when it was dropped. */
  #enqueue(port: SwitchPort, bytes: Uint8Array, offset: number, length: number): number {
    if (port.queue.full) {
      port.counters.tx_dropped_queue_full++;
      return -1;
    }
    const slot = this.#store(port, bytes, offset, length);
    if (slot >= 0) port.queue.push(slot);
    return slot;
  }

  #store(port: SwitchPort, bytes: Uint8Array, offset: number, length: number): number {
    const slot = this.#pool.store(bytes, offset, length);
    if (slot < 0) port.counters.tx_dropped_buffer_full++;
    return slot;
  }

  #push(port: SwitchPort, slot: number): void {
    if (!port.queue.full) {
      port.queue.push(slot);
      return;
    }
    port.counters.tx_dropped_queue_full++;
    this.#pool.release(slot);
  }
}
