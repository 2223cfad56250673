/**
 * An Ethernet switch (IEEE 802.1Q clause 8, one VLAN), sans-IO: MAC learning or fixed routes, eight priorities, a shared packet memory, PFC, ECN
 * marking, fault rules. See {@link Switch} for how a driver turns its crank.
 *
 * Invariants: a frame never leaves by the port it came in on; frames of one priority from one port to another keep their order, except those
 * a reorder rule holds back; every frame and every copy is accounted for (see SwitchPortCounters).
 */

import { RoceError } from '../core/errors.js';
import type { RandomSource } from '../core/random.js';
import { type FaultPlan, flipBit } from '../faults/fault-plan.js';
import { type FaultSubject, newFaultSubject, readBth } from '../faults/fault-subject.js';
import { FAULT_CORRUPT, FAULT_DELAY, FAULT_DROP, FAULT_DUPLICATE } from '../faults/grammar.js';
import { HeldBack } from '../faults/held-back.js';
import { ECN_CE, ECN_NOT_ECT, readEcn, writeCe } from '../packet/ecn.js';
import { ETHERNET_BYTES, MAC_BYTES } from '../packet/ethernet.js';
import { FRAME_OK, FrameInfo, parseFrame } from '../packet/frame.js';
import { PFC_FRAME_BYTES, PfcFrame, PRIORITIES, parsePfc, writePfc } from '../packet/pfc.js';
import { ROCE_UDP_PORT } from '../port/datagram.js';
import { layOutBuffer } from './buffer-layout.js';
import { ADMITTED, type BufferPolicy, DROP_COUNTERS, PacketLimit } from './buffer-policy.js';
import { EgressMarking, KEEP, MARK } from './egress-marking.js';
import { EgressQueues } from './egress-queues.js';
import { FlowControl } from './flow-control.js';
import { ForwardingTable } from './forwarding-table.js';
import { FrameClassifier } from './frame-classifier.js';
import { FramePool } from './frame-pool.js';
import { MacTable, macNumber } from './mac-table.js';
import { portMac } from './pause-sender.js';
import { ReadyPorts } from './ready-ports.js';
import { Scheduler } from './scheduler.js';
import { SharedBuffer } from './shared-buffer.js';
import type { SwitchConfig, SwitchPortConfig } from './switch-config.js';
import { countPauses, newSwitchPortCounters, type SwitchPortCounters } from './switch-counters.js';
import { type SwitchSnapshot, takeSnapshot } from './switch-snapshot.js';

export interface SwitchOptions extends SwitchConfig {
  /** Names of the ports, as fault rules and counters call them; a port's number is its place here. */
  readonly ports: readonly string[];
  readonly faults?: FaultPlan;
  /** For marking; required where there is any. */
  readonly random?: RandomSource;
}

/** A jumbo frame of 9216 bytes payload with Ethernet header and one 802.1Q tag. */
const FRAME_BYTES_MAX = 9234;
const GROUP_BIT = 1;
/** 01-80-C2-00-00-00 without its last four bits. */
const LINK_LOCAL_GROUP = 0x0180c2000000;
const MAC_CONTROL = 0x0180c2000001;
const UNKNOWN = -1;
const ALL_PRIORITIES = 0xff;

class SwitchPort {
  readonly name: string;
  readonly mac: Uint8Array;
  readonly counters: SwitchPortCounters = newSwitchPortCounters();
  readonly held: HeldBack<number>;

  constructor(name: string, number: number, release: (port: number, slot: number) => void) {
    this.name = name;
    this.mac = portMac(number);
    this.held = new HeldBack((slot) => release(number, slot));
  }
}

/**
 * The driver, sockets or virtual time, owns the links:
 *
 * - {@link receive} takes a frame in, {@link take} gives the next one for a port, or -1 when it has none that may be sent now. A driver calls
 *   `take` when the port's link is free, keeps the link busy for the length of the frame, and gives the slot back by {@link release}.
 * - After `receive`, `onDeadline` and `unblock`, {@link nextReady} names the ports that have something new to send, so that an idle link is
 *   started. A driver whose link is busy need not care: it will come back to `take`. Calling `take` too often is harmless.
 * - {@link nextDeadlineNs} is when {@link onDeadline} should be called: received pauses end, own pauses are repeated, the watchdog looks.
 *   Later than that is harmless, too; Infinity when nothing is due.
 *
 * Time is in nanoseconds and never runs backwards. Nothing is allocated per frame, apart from what the memory grows by at first.
 */
export class Switch {
  readonly #ports: readonly SwitchPort[];
  readonly #faults: FaultPlan | undefined;
  readonly #floods: boolean;
  readonly #frameBytesMax: number;
  readonly #slotsMax: number;
  readonly #pool: FramePool;
  readonly #queues: EgressQueues;
  readonly #scheduler: Scheduler;
  readonly #buffer: BufferPolicy;
  readonly #flowControl: FlowControl;
  readonly #marking: EgressMarking;
  readonly #classifier: FrameClassifier;
  readonly #routes: ForwardingTable | undefined;
  readonly #macs: MacTable;
  readonly #ready: ReadyPorts;
  /** By port: priorities the operator has stopped. */
  readonly #blocked: Uint8Array;
  readonly #pfc = new PfcFrame();
  readonly #frame = new FrameInfo();
  readonly #subject: FaultSubject = newFaultSubject();
  #nowNs = 0;

  /** Throws ERR_ROCE_INVALID_ARGUMENT for port names that are missing, repeated, or impossible in a fault rule, and for settings that contradict each other. */
  constructor(options: SwitchOptions) {
    const names = checkedNames(options.ports);
    const ports = names.map((name): SwitchPortConfig => ({ ...options.portDefaults, ...options.portConfig?.[name] }));
    const buffer = options.buffer ?? (options.pfc === undefined ? undefined : {});
    this.#ports = names.map((name, port) => new SwitchPort(name, port, (egress, slot) => this.#admit(egress, slot)));
    this.#faults = options.faults;
    this.#floods = options.flood ?? true;
    this.#frameBytesMax = options.frameBytesMax ?? FRAME_BYTES_MAX;
    this.#slotsMax = options.bufferPackets ?? (buffer === undefined ? 4096 : 2 ** 20);
    this.#pool = new FramePool(this.#frameBytesMax);
    this.#queues = new EgressQueues(names.length, this.#pool);
    this.#scheduler = new Scheduler(names.length, this.#queues, options.scheduling ?? {});
    this.#ready = new ReadyPorts(names.length);
    this.#flowControl = new FlowControl(options.pfc, ports, (port) => this.#ready.add(port), {
      begin: (port) => this.#ports[port].counters.pfcwd_storms++,
      end: (port) => this.#ports[port].counters.pfcwd_restored++,
      discard: (port, priority) => this.#discard(port, priority),
    });
    this.#buffer =
      buffer === undefined
        ? new PacketLimit(this.#queues, options.queuePackets ?? 1024)
        : new SharedBuffer(
            layOutBuffer(buffer, options.pfc?.priorities ?? [], ports, this.#frameBytesMax),
            this.#queues,
            this.#flowControl.sender,
          );
    this.#marking = new EgressMarking(
      ports.map((port) => (port.ecn === undefined ? options.ecn : (port.ecn ?? undefined))),
      options.random,
    );
    this.#classifier = new FrameClassifier(options.classification ?? {});
    this.#routes =
      options.routes === undefined ? undefined : new ForwardingTable(options.routes, names, options.hashSeed ?? 0);
    this.#macs = new MacTable(options.macTableEntries ?? 4096, options.macAgeNs ?? 300e9);
    this.#blocked = new Uint8Array(names.length);
  }

  /** By port name. The objects are live; do not change them. */
  get counters(): Readonly<Record<string, Readonly<SwitchPortCounters>>> {
    return Object.fromEntries(this.#ports.map((port) => [port.name, port.counters]));
  }

  /** Stations in the MAC table, aged ones included. */
  get stations(): number {
    return this.#macs.size;
  }

  /** Frames that occupy the packet memory, taken ones included. */
  get bufferedPackets(): number {
    return this.#pool.used;
  }

  /**
   * Takes in one frame without check sequence. The bytes are copied; they may be reused when the call returns. Whatever they are,
   * nothing is thrown.
   */
  receive(port: number, bytes: Uint8Array, offset: number, length: number, nowNs: number): void {
    const counters = this.#ports[port].counters;
    this.#nowNs = nowNs;
    counters.rx_packets++;
    counters.rx_bytes += length;
    if (length < ETHERNET_BYTES) {
      counters.rx_dropped_too_short++;
      return;
    }
    if (length > this.#frameBytesMax) {
      counters.rx_dropped_too_long++;
      return;
    }
    const destination = macNumber(bytes, offset);
    if (destination === MAC_CONTROL && this.#flowControl.isOn) {
      this.#receivePause(port, bytes, offset, length, nowNs);
      return;
    }
    if ((bytes[offset + MAC_BYTES] & GROUP_BIT) !== 0) {
      counters.rx_dropped_source_multicast++;
      return;
    }
    this.#macs.learn(macNumber(bytes, offset + MAC_BYTES), port, nowNs);
    if (destination - (destination & 0xf) === LINK_LOCAL_GROUP) {
      counters.rx_dropped_link_local++;
      return;
    }
    this.#classifier.read(bytes, offset, length);
    if (this.#flowControl.isDropping(port, this.#classifier.priority)) {
      counters.rx_dropped_watchdog++;
      return;
    }
    const egress = this.#egressOf(destination, bytes, offset, length, nowNs);
    if (egress === port) {
      counters.rx_dropped_same_port++;
      return;
    }
    if (egress === UNKNOWN && !this.#floods) {
      counters.rx_dropped_no_route++;
      return;
    }
    const isRoce = this.#faults !== undefined && this.#readSubject(bytes, offset, length);
    if (egress !== UNKNOWN) {
      counters.rx_forwarded++;
      this.#forward(port, egress, bytes, offset, length, isRoce);
      return;
    }
    counters.rx_flooded++;
    for (let other = 0; other < this.#ports.length; other++) {
      if (other !== port) this.#forward(port, other, bytes, offset, length, isRoce);
    }
  }

  /** A port that has something to send since it was last named here or asked by `take`, or -1. */
  nextReady(): number {
    return this.#ready.next();
  }

  /** Frames waiting at an egress. */
  queued(port: number): number {
    return this.#queues.portPackets[port];
  }

  /** Bytes waiting at an egress in one priority. */
  queuedBytes(port: number, priority: number): number {
    return this.#queues.bytes[port * PRIORITIES + priority];
  }

  /**
   * The next frame to send from `port`, as a slot number, or -1 when there is none or none may go. The caller owns the slot, with its bytes
   * in {@link frame} or {@link slotBytes}, until it calls {@link release}.
   */
  take(port: number, nowNs: number): number {
    if (this.#flowControl.sender.pending[port] !== 0) return this.#takePause(port, nowNs);
    const { counters } = this.#ports[port];
    for (;;) {
      const stopped = this.#blocked[port] | this.#flowControl.receiver.maskAt(port, nowNs);
      const eligible = this.#queues.occupied[port] & ~stopped;
      if (eligible === 0) return -1;
      const priority = this.#scheduler.select(port, eligible);
      const slot = this.#shift(port, priority);
      const verdict = this.#marking.departing(port, priority, this.queuedBytes(port, priority), nowNs);
      if (!this.#mark(verdict, slot, counters)) {
        this.#pool.release(slot);
        continue;
      }
      counters.tx_packets++;
      counters.tx_bytes += this.#pool.lengths[slot];
      return slot;
    }
  }

  /** The bytes of a taken frame. */
  frame(slot: number): Uint8Array {
    return this.#pool.view(slot);
  }

  /** The memory of a taken frame, which begins at 0 and is `slotLength` long: for drivers to whom a view of its own is too dear. */
  slotBytes(slot: number): Uint8Array {
    return this.#pool.bytes(slot);
  }

  slotLength(slot: number): number {
    return this.#pool.lengths[slot];
  }

  release(slot: number): void {
    this.#pool.release(slot);
  }

  /** Infinity when nothing is due. */
  get nextDeadlineNs(): number {
    return this.#flowControl.nextDeadlineNs;
  }

  onDeadline(nowNs: number): void {
    this.#nowNs = nowNs;
    this.#flowControl.onDeadline(nowNs);
  }

  /** Stops a port, or one priority of it, as a breakpoint: frames wait. Pause frames of ours still leave. */
  block(port: number, priority?: number): void {
    this.#blocked[port] |= priority === undefined ? ALL_PRIORITIES : 1 << priority;
  }

  unblock(port: number, priority?: number): void {
    this.#blocked[port] &= priority === undefined ? 0 : ~(1 << priority);
    this.#ready.add(port);
  }

  /** What is in the queues and pools, and how much was at most since the last {@link resetWatermarks}. */
  snapshot(nowNs: number): SwitchSnapshot {
    const names = this.#ports.map(({ name }) => name);
    return takeSnapshot(names, this.#queues, this.#buffer, this.#flowControl, this.#blocked, nowNs);
  }

  resetWatermarks(): void {
    this.#queues.resetWatermarks();
    this.#buffer.resetWatermarks();
  }

  #egressOf(destination: number, bytes: Uint8Array, offset: number, length: number, nowNs: number): number {
    if (this.#routes !== undefined) {
      const port = this.#routes.lookup(destination, bytes, offset, length, this.#classifier.ipOffset);
      if (port >= 0) return port;
    }
    return (bytes[offset] & GROUP_BIT) !== 0 ? UNKNOWN : this.#macs.lookup(destination, nowNs);
  }

  #receivePause(port: number, bytes: Uint8Array, offset: number, length: number, nowNs: number): void {
    const { counters } = this.#ports[port];
    if (!parsePfc(bytes, offset, length, this.#pfc)) {
      counters.rx_dropped_bad_pfc++;
      return;
    }
    counters.rx_pfc_packets++;
    countPauses(counters, 'rx', this.#pfc.enabled, this.#pfc.quanta);
    this.#flowControl.receive(port, this.#pfc, nowNs);
  }

  #takePause(port: number, nowNs: number): number {
    const { counters, mac } = this.#ports[port];
    this.#flowControl.sender.fill(port, this.#pfc, nowNs);
    const slot = this.#pool.allocate(PFC_FRAME_BYTES);
    writePfc(this.#pool.bytes(slot), 0, mac, this.#pfc);
    counters.tx_packets++;
    counters.tx_pfc_packets++;
    counters.tx_bytes += PFC_FRAME_BYTES;
    countPauses(counters, 'tx', this.#pfc.enabled, this.#pfc.quanta);
    return slot;
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
      this.#enqueue(ingress, egress, bytes, offset, length);
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
      const slot = this.#store(ingress, egress, bytes, offset, length);
      if (slot < 0) return;
      port.counters.faults_delayed++;
      if (!port.held.hold(slot, behind)) this.#admit(egress, slot);
      return;
    }
    if (action === FAULT_DUPLICATE) {
      port.counters.faults_duplicated++;
      this.#enqueue(ingress, egress, bytes, offset, length);
    }
    const slot = this.#enqueue(ingress, egress, bytes, offset, length);
    if (action === FAULT_CORRUPT && slot >= 0) {
      port.counters.faults_corrupted++;
      flipBit(this.#pool.view(slot), this.#frame.payloadOffset - offset, bit);
    }
    port.held.passed();
  }

  /** Copies the frame to the end of the egress queue. Returns its slot, or -1 when it was dropped. */
  #enqueue(ingress: number, egress: number, bytes: Uint8Array, offset: number, length: number): number {
    const slot = this.#store(ingress, egress, bytes, offset, length);
    return slot >= 0 && this.#admit(egress, slot) ? slot : -1;
  }

  #store(ingress: number, egress: number, bytes: Uint8Array, offset: number, length: number): number {
    const pool = this.#pool;
    if (pool.used >= this.#slotsMax) {
      this.#ports[egress].counters.tx_dropped_buffer_full++;
      return -1;
    }
    const slot = pool.store(bytes, offset, length);
    pool.ingress[slot] = ingress;
    pool.priority[slot] = this.#classifier.priority;
    pool.ipOffset[slot] = this.#classifier.ipOffset;
    return slot;
  }

  /** Puts a stored frame into the egress queue if it may have a place there; else drops it. */
  #admit(egress: number, slot: number): boolean {
    const pool = this.#pool;
    const { counters } = this.#ports[egress];
    const priority = pool.priority[slot];
    if (this.#flowControl.isDropping(egress, priority)) {
      counters.tx_dropped_watchdog++;
      pool.release(slot);
      return false;
    }
    const reason = this.#buffer.admit(pool.ingress[slot], egress, priority, pool.lengths[slot]);
    if (reason !== ADMITTED) {
      counters[DROP_COUNTERS[reason]]++;
      pool.release(slot);
      return false;
    }
    const verdict = this.#marking.arriving(egress, priority, this.queuedBytes(egress, priority), this.#nowNs);
    if (!this.#mark(verdict, slot, counters)) {
      this.#buffer.depart(pool.ingress[slot], egress, priority, pool.lengths[slot]);
      pool.release(slot);
      return false;
    }
    this.#queues.push(egress, slot);
    this.#ready.add(egress);
    return true;
  }

  #shift(port: number, priority: number): number {
    const slot = this.#queues.shift(port, priority);
    this.#buffer.depart(this.#pool.ingress[slot], port, priority, this.#pool.lengths[slot]);
    return slot;
  }

  /** Carries out a verdict of the marking; false when the packet must be dropped instead. */
  #mark(verdict: number, slot: number, counters: SwitchPortCounters): boolean {
    if (verdict === KEEP) return true;
    const ip = this.#pool.ipOffset[slot];
    const bytes = this.#pool.bytes(slot);
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

  /** A storm has begun whose queue is to be emptied. */
  #discard(port: number, priority: number): void {
    while ((this.#queues.occupied[port] & (1 << priority)) !== 0) {
      this.#pool.release(this.#shift(port, priority));
      this.#ports[port].counters.tx_dropped_watchdog++;
    }
  }
}

function checkedNames(names: readonly string[]): readonly string[] {
  if (names.length >= 2 && new Set(names).size === names.length && names.every((name) => /^[\w.-]+$/.test(name))) {
    return names;
  }
  throw new RoceError(
    'ERR_ROCE_INVALID_ARGUMENT',
    `a switch cannot have the ports [${names.join(', ')}]`,
    'give two or more different names of letters, digits, dots, dashes and underscores',
  );
}
