/**
 * An Ethernet switch (IEEE 802.1Q clause 8, one VLAN), sans-IO: MAC learning or fixed routes, eight priorities, a
 * shared packet memory, PFC, ECN marking, fault rules. See {@link Switch} for how a driver polls it.
 *
 * Invariants: a frame never leaves by the port it came in on; frames of one priority from one port to another keep
 * their order, except those a rule holds back; every frame and every copy is accounted for (see SwitchPortCounters).
 */

import { type RandomSource, RoceError } from 'rocev2/internal/core';
import {
  Delayed,
  type FaultPlan,
  type FaultSubject,
  type FaultVerdict,
  HeldBack,
  newFaultSubject,
  readBth,
} from 'rocev2/internal/faults';
import { ETHERNET_BYTES, FRAME_OK, FrameInfo, MAC_BYTES, PRIORITIES, parseFrame } from 'rocev2/internal/packet';
import { ROCE_UDP_PORT } from 'rocev2/internal/port';
import { checkSwitchOptions } from './check-options.js';
import { changeFrame } from './faulty-frame.js';
import { ForwardingTable } from './forwarding-table.js';
import { FrameClassifier } from './frame-classifier.js';
import type { FramePool } from './frame-pool.js';
import { MacTable, macNumber } from './mac-table.js';
import type { RouteConfig, SwitchConfig, SwitchPortConfig } from './switch-config.js';
import { newSwitchPortCounters, type SwitchPortCounters } from './switch-counters.js';
import type { SwitchSnapshot } from './switch-snapshot.js';
import { TrafficManager } from './traffic-manager.js';

/** Parts of a {@link Switch}: settings, ports, and random streams. */
export interface SwitchOptions extends SwitchConfig {
  /** Names of the ports, as fault rules and counters call them; a port's number is its place here. */
  readonly ports: readonly string[];
  /** Rules that drop, change, duplicate or hold back frames; none unless given. */
  readonly faults?: FaultPlan | undefined;
  /** Called for each frame that a rule matches; both records are valid during the call. */
  readonly onFault?: ((verdict: Readonly<FaultVerdict>, subject: Readonly<FaultSubject>) => void) | undefined;
  /** For marking; required where there is any. */
  readonly random?: RandomSource | undefined;
  /**
   * For simulators, whose frames keep their slots from host to host. If it keeps no payload, no rule may change bytes
   * of a packet.
   *
   * @internal
   */
  readonly pool?: FramePool | undefined;
}

/** A jumbo frame of 9216 bytes payload with Ethernet header and one 802.1Q tag. */
const FRAME_BYTES_MAX = 9234;
const GROUP_BIT = 1;
/** 01-80-C2-00-00-00 without its last four bits. */
const LINK_LOCAL_GROUP = 0x0180c2000000;
const MAC_CONTROL = 0x0180c2000001;
const UNKNOWN = -1;
const NO_SLOT = -1;

interface Copy {
  readonly ingress: number;
  readonly egress: number;
  readonly bytes: Uint8Array;
  readonly offset: number;
  readonly length: number;
}

class SwitchPort {
  readonly name: string;
  readonly counters: SwitchPortCounters = newSwitchPortCounters();
  readonly held: HeldBack<number>;

  constructor(name: string, number: number, release: (port: number, slot: number) => void) {
    this.name = name;
    this.held = new HeldBack((slot) => release(number, slot));
  }
}

/**
 * The driver, sockets or virtual time, owns the links:
 *
 * - {@link receive} takes a frame in, {@link take} gives the next one for a port, or -1 when it has none that may be
 *   sent now. A driver calls `take` when the port's link is free, keeps the link busy for the length of the frame, and
 *   returns the slot by {@link release}.
 * - After `receive`, `take`, `onDeadline` and `unblock`, {@link nextReady} names the ports that have something new to
 *   send, so that an idle link is started. A frame that leaves may let the sender of another port continue. A driver
 *   whose link is busy can ignore this, because it calls `take` later. Calling `take` too often is harmless.
 * - {@link nextDeadlineNs} is when {@link onDeadline} should be called: received pauses end, own pauses are repeated,
 *   the watchdog looks. A later call is harmless; Infinity when nothing is due.
 *
 * Time is in nanoseconds and never runs backwards. Nothing is allocated per frame, except while the packet memory grows
 * to its size.
 */
export class Switch {
  readonly #ports: readonly SwitchPort[];
  readonly #traffic: TrafficManager;
  readonly #classifier: FrameClassifier;
  readonly #hashSeed: number;
  #routes: ForwardingTable | undefined;
  readonly #macs: MacTable;
  readonly #learns: boolean;
  readonly #faults: FaultPlan | undefined;
  readonly #onFault: NonNullable<SwitchOptions['onFault']>;
  readonly #delayed = new Delayed<{ readonly egress: number; readonly slot: number }>(({ egress, slot }) => {
    this.#traffic.admit(egress, slot, this.#nowNs);
    this.#ports[egress].held.passed();
  });
  readonly #floods: boolean;
  readonly #frameBytesMax: number;
  readonly #frame = new FrameInfo();
  readonly #subject: FaultSubject = newFaultSubject();
  #nowNs = 0;
  /** The slot that {@link receiveSlot} brings, until the frame is stored. */
  #offered = NO_SLOT;

  /**
   * Throws ERR_ROCE_MALFORMED for port names that are missing, repeated, or impossible in a fault rule,
   * ERR_ROCE_CONFLICT for settings that contradict each other. Throws ERR_ROCE_INVALID_ARGUMENT, ERR_ROCE_OUT_OF_RANGE
   * or ERR_ROCE_UNKNOWN_NAME for settings that are wrong by themselves.
   */
  constructor(options: SwitchOptions) {
    checkSwitchOptions('Switch', options);
    const names = checkedNames(options.ports);
    this.#ports = names.map(
      (name, port) => new SwitchPort(name, port, (egress, slot) => this.#traffic.admit(egress, slot, this.#nowNs)),
    );
    this.#frameBytesMax = options.frameBytesMax ?? FRAME_BYTES_MAX;
    this.#traffic = new TrafficManager(
      options,
      names.map((name): SwitchPortConfig => ({ ...options.portDefaults, ...options.portConfig?.[name] })),
      this.#ports.map(({ counters }) => counters),
      this.#frameBytesMax,
    );
    this.#classifier = new FrameClassifier(options.classification ?? {});
    this.#hashSeed = options.hashSeed ?? 0;
    if (options.routes !== undefined) this.reroute(options.routes);
    const { macTableEntries = 4096, macAgeNs = 300e9 } = options;
    this.#macs = new MacTable(macTableEntries, macAgeNs);
    this.#learns = macTableEntries > 0;
    this.#faults = options.faults;
    this.#onFault = options.onFault ?? (() => {});
    this.#floods = options.flood ?? true;
  }

  /** By port name. The objects are live; do not change them. */
  get counters(): Readonly<Record<string, Readonly<SwitchPortCounters>>> {
    return Object.fromEntries(this.#ports.map((port) => [port.name, port.counters]));
  }

  /**
   * Replaces all routes; frames that wait already leave where they were going. Throws ERR_ROCE_MALFORMED for a
   * destination that cannot be read, ERR_ROCE_UNKNOWN_NAME for ports that do not exist.
   */
  reroute(routes: readonly RouteConfig[]): void {
    const names = this.#ports.map(({ name }) => name);
    this.#routes = new ForwardingTable(routes, names, this.#hashSeed);
  }

  /** Stations in the MAC table, aged ones included. */
  get stations(): number {
    return this.#macs.size;
  }

  /** Frames that occupy the packet memory, taken ones included. */
  get bufferedPackets(): number {
    return this.#traffic.usedSlots;
  }

  /**
   * Takes in one frame without check sequence. The bytes are copied and may be reused after the call. Never throws,
   * also for malformed bytes.
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
    const isGroup = (bytes[offset] & GROUP_BIT) !== 0;
    if (isGroup && this.#traffic.flowControl.isOn && macNumber(bytes, offset) === MAC_CONTROL) {
      this.#traffic.receivePause(port, bytes, offset, length, nowNs);
      return;
    }
    if ((bytes[offset + MAC_BYTES] & GROUP_BIT) !== 0) {
      counters.rx_dropped_source_multicast++;
      return;
    }
    if (this.#learns) this.#macs.learn(macNumber(bytes, offset + MAC_BYTES), port, nowNs);
    if (isGroup && isLinkLocal(macNumber(bytes, offset))) {
      counters.rx_dropped_link_local++;
      return;
    }
    this.#classifier.read(bytes, offset, length);
    if (this.#traffic.flowControl.isDropping(port, this.#classifier.priority)) {
      counters.rx_dropped_watchdog++;
      return;
    }
    const egress = this.#egressOf(bytes, offset, length, nowNs);
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
    const offered = this.#offered;
    this.#offered = NO_SLOT; // Every port has a copy.
    for (let other = 0; other < this.#ports.length; other++) {
      if (other !== port) this.#forward(port, other, bytes, offset, length, isRoce);
    }
    this.#offered = offered;
  }

  /**
   * As {@link receive}, for a frame in a slot of the pool, which then belongs to the switch.
   *
   * @internal
   */
  receiveSlot(port: number, slot: number, nowNs: number): void {
    const { pool } = this.#traffic;
    this.#offered = slot;
    this.receive(port, pool.bytes(slot), 0, pool.lengths[slot], nowNs);
    if (this.#offered === NO_SLOT) return;
    pool.release(slot);
    this.#offered = NO_SLOT;
  }

  /** A port that may have something new to send, each named once, or -1. */
  nextReady(): number {
    return this.#traffic.ready.next();
  }

  /** Something waits at an egress, pause frames of the switch included; perhaps it may not be sent now. @internal */
  hasFrames(port: number): boolean {
    return this.#traffic.queues.portPackets[port] > 0 || this.#traffic.flowControl.sender.pending[port] !== 0;
  }

  /** Frames waiting at an egress. */
  queued(port: number): number {
    return this.#traffic.queues.portPackets[port];
  }

  /** Bytes waiting at an egress in one priority. */
  queuedBytes(port: number, priority: number): number {
    return this.#traffic.queues.bytes[port * PRIORITIES + priority];
  }

  /**
   * The next frame to send from `port`, as a slot number, or -1 when there is none or none may go. The caller owns the
   * slot, with its bytes in {@link frame} or {@link slotBytes}, until it calls {@link release}.
   */
  take(port: number, nowNs: number): number {
    return this.#traffic.take(port, nowNs);
  }

  /** The bytes of a taken frame. */
  frame(slot: number): Uint8Array {
    return this.#traffic.pool.view(slot);
  }

  /** The memory of a taken frame, which begins at 0 and is `slotLength` long: for drivers that cannot afford a view. */
  slotBytes(slot: number): Uint8Array {
    return this.#traffic.pool.bytes(slot);
  }

  /** Bytes of a taken frame. */
  slotLength(slot: number): number {
    return this.#traffic.pool.lengths[slot];
  }

  /** Returns a slot of {@link take}. */
  release(slot: number): void {
    this.#traffic.release(slot);
  }

  /**
   * Instead of {@link release}: a slot of {@link take} goes to another user of the pool.
   *
   * @internal
   */
  handOver(): void {
    this.#traffic.disown();
  }

  /** Infinity when nothing is due. */
  get nextDeadlineNs(): number {
    return Math.min(this.#traffic.flowControl.nextDeadlineNs, this.#delayed.nextNs);
  }

  /** When the next frame delayed by a rule is due; Infinity when none is. Never before {@link nextDeadlineNs}. */
  get nextReleaseNs(): number {
    return this.#delayed.nextNs;
  }

  /** Does what is due by `nowNs`; harmless when nothing is. */
  onDeadline(nowNs: number): void {
    this.#nowNs = nowNs;
    this.#traffic.flowControl.onDeadline(nowNs);
    this.#delayed.release(nowNs);
  }

  /** Stops a port, or one priority of it, as a breakpoint: frames wait. The switch's own pause frames still leave. */
  block(port: number, priority?: number): void {
    this.#traffic.block(port, priority);
  }

  /** Ends {@link block} for the port or one priority of it. */
  unblock(port: number, priority?: number): void {
    this.#traffic.unblock(port, priority);
  }

  /** Contents of the queues and pools, and their maxima since the last {@link resetWatermarks}. */
  snapshot(nowNs: number): SwitchSnapshot {
    return this.#traffic.snapshot(
      this.#ports.map(({ name }) => name),
      nowNs,
    );
  }

  /** Every maximum of {@link snapshot} becomes what is in use now. */
  resetWatermarks(): void {
    this.#traffic.resetWatermarks();
  }

  #egressOf(bytes: Uint8Array, offset: number, length: number, nowNs: number): number {
    if (this.#routes !== undefined) {
      const port = this.#routes.lookup(bytes, offset, length, this.#classifier.ipOffset);
      if (port >= 0) return port;
    }
    return (bytes[offset] & GROUP_BIT) !== 0 ? UNKNOWN : this.#macs.lookup(macNumber(bytes, offset), nowNs);
  }

  #readSubject(bytes: Uint8Array, offset: number, length: number): boolean {
    const frame = this.#frame;
    if (parseFrame(bytes, offset, length, frame) !== FRAME_OK || frame.destinationPort !== ROCE_UDP_PORT) return false;
    this.#subject.ipId = frame.family === 4 ? frame.ipId : -1;
    return readBth(this.#subject, bytes, frame.payloadOffset, frame.payloadBytes);
  }

  #forward(ingress: number, egress: number, bytes: Uint8Array, offset: number, length: number, isRoce: boolean): void {
    const port = this.#ports[egress];
    if (this.#faults === undefined || !isRoce) {
      this.#enqueue(ingress, egress, bytes, offset, length);
      return;
    }
    this.#subject.ingress = this.#ports[ingress].name;
    this.#subject.egress = port.name;
    const verdict = this.#faults.decide(this.#subject, this.#nowNs);
    if (verdict !== undefined) {
      this.#onFault(verdict, this.#subject);
      this.#applyVerdict(verdict, { ingress, egress, bytes, offset, length });
      return;
    }
    this.#enqueue(ingress, egress, bytes, offset, length);
    port.held.passed();
  }

  #applyVerdict(verdict: FaultVerdict, { ingress, egress, bytes, offset, length }: Copy): void {
    const { counters, held } = this.#ports[egress];
    if (verdict.drops) {
      counters.tx_dropped_fault++;
      return;
    }
    const slot = this.#store(ingress, egress, bytes, offset, length);
    if (slot < 0) return;
    const { pool } = this.#traffic;
    pool.lengths[slot] = changeFrame(verdict, pool.bytes(slot), length, counters);
    if (verdict.duplicates) {
      counters.faults_duplicated++;
      this.#enqueue(ingress, egress, pool.bytes(slot), 0, pool.lengths[slot]);
    }
    if (verdict.behind > 0 && held.hold(slot, verdict.behind)) {
      counters.faults_delayed++;
      return;
    }
    if (verdict.delayNs >= 0) {
      if (this.#delayed.hold({ egress, slot }, this.#nowNs + verdict.delayNs)) counters.faults_delayed++;
      else {
        counters.tx_dropped_fault++;
        this.#traffic.release(slot);
      }
      return;
    }
    this.#traffic.admit(egress, slot, this.#nowNs);
    held.passed();
  }

  #enqueue(ingress: number, egress: number, bytes: Uint8Array, offset: number, length: number): void {
    const slot = this.#store(ingress, egress, bytes, offset, length);
    if (slot >= 0) this.#traffic.admit(egress, slot, this.#nowNs);
  }

  #store(ingress: number, egress: number, bytes: Uint8Array, offset: number, length: number): number {
    const traffic = this.#traffic;
    if (!traffic.hasRoom(egress)) return NO_SLOT;
    const slot = this.#offered === NO_SLOT ? traffic.pool.store(bytes, offset, length) : this.#offered;
    this.#offered = NO_SLOT;
    traffic.own(slot, ingress, this.#classifier.priority, this.#classifier.ipOffset);
    return slot;
  }
}

function isLinkLocal(mac: number): boolean {
  return mac - (mac & 0xf) === LINK_LOCAL_GROUP;
}

function checkedNames(names: readonly string[] = []): readonly string[] {
  if (names.length >= 2 && new Set(names).size === names.length && names.every((name) => /^[\w.-]+$/.test(name))) {
    return names;
  }
  throw new RoceError(
    'ERR_ROCE_MALFORMED',
    `a switch cannot have the ports [${names.join(', ')}]`,
    'give two or more different names of letters, digits, dots, dashes and underscores',
  );
}
