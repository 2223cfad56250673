import {
  checkKind,
  checkOneOf,
  checkOptions,
  checkWhole,
  namesHint,
  type OptionNames,
  RoceError,
  SeededRandom,
} from 'rocev2/internal/core';
import { FaultPlan } from 'rocev2/internal/faults';
import type { IpAddress } from 'rocev2/internal/packet';
import { RdmaDevice } from 'rocev2/internal/verbs';
import { checkSwitchConfig } from '../switch/check-options.js';
import type { SwitchConfig } from '../switch/switch-config.js';
import type { SwitchPortCounters } from '../switch/switch-counters.js';
import { EventQueue } from './event-queue.js';
import { Network } from './network.js';
import { runUntilSettled } from './promises.js';
import { TraceHash } from './scenario/trace-hash.js';
import type { SimStation } from './sim-station.js';
import type { SimSwitch } from './sim-switch.js';
import { checkTopology, type Topology } from './topology.js';

/** Options of a network. */
export interface SimulationOptions {
  /** Hosts, switches and links: see {@link star} and similar functions, or write one. */
  readonly topology: Topology;
  /** Of all random numbers. Default 1. */
  readonly seed?: number | undefined;
  /** The largest path MTU of the hosts: 256, 512, 1024 (default), 2048 or 4096 bytes. */
  readonly pathMtu?: number | undefined;
  /** Of every switch: marking, packet memory, PFC. Rates and routes follow from the topology. */
  readonly switchConfig?: SwitchConfig | undefined;
  /** Fault rules of every switch: docs/faults.md. */
  readonly faults?: string | undefined;
}

const SIMULATION_OPTIONS: OptionNames<SimulationOptions> = {
  topology: true,
  seed: true,
  pathMtu: true,
  switchConfig: true,
  faults: true,
};

/** When {@link Simulation.run} ends. */
export interface SimulationLimits {
  /** Virtual time, nanoseconds. Default: without limit. */
  readonly untilNs?: number | undefined;
  /** Ends the run when it returns true. */
  readonly done?: (() => boolean) | undefined;
  /** Default 1e9: a program that never becomes idle must end. */
  readonly eventsMax?: number | undefined;
}

const LIMITS: OptionNames<SimulationLimits> = { untilNs: true, done: true, eventsMax: true };
const EVENTS_MAX = 1e9;
const PATH_MTUS = [256, 512, 1024, 2048, 4096] as const;

/** A network at virtual time 0. */
export class Simulation {
  readonly #events = new EventQueue();
  readonly #network: Network;
  readonly #devices = new Map<string, Promise<RdmaDevice>>();
  readonly #trace = new TraceHash();

  /**
   * Throws ERR_ROCE_INVALID_ARGUMENT for a topology with hosts that cannot be reached, ERR_ROCE_MALFORMED for fault
   * rules that cannot be read.
   */
  constructor(options: SimulationOptions) {
    checkOptions('Simulation', options, SIMULATION_OPTIONS);
    const { topology, seed = 1, pathMtu = 1024, switchConfig = {}, faults } = options;
    checkTopology(topology);
    checkWhole('seed', seed, 0, Number.MAX_SAFE_INTEGER);
    checkOneOf('pathMtu', pathMtu, PATH_MTUS);
    checkSwitchConfig('switchConfig', switchConfig);
    if (faults !== undefined) checkKind('faults', faults, typeof faults === 'string', 'text');
    this.#network = new Network({
      topology,
      events: this.#events,
      random: new SeededRandom(seed),
      pathMtu,
      switchConfig,
      faultsOf: (name) =>
        faults === undefined
          ? undefined
          : FaultPlan.parse(faults, new SeededRandom(seed + topology.switches.indexOf(name))),
    });
    for (const station of this.#network.stations.values()) {
      station.onPacket = (isSent, bytes, offset, length, ecn) => this.#trace.add(isSent, bytes, offset, length, ecn);
    }
  }

  /** Virtual time, nanoseconds. */
  get nowNs(): number {
    return this.#events.nowNs;
  }

  /** A fingerprint of all packets so far, in hexadecimal digits: the same seed and program give the same. */
  get traceHash(): string {
    return this.#trace.toString();
  }

  /** The verbs device of a host: the same one each time. Throws ERR_ROCE_UNKNOWN_NAME if there is no such host. */
  device(host: string): Promise<RdmaDevice> {
    let device = this.#devices.get(host);
    if (device === undefined) {
      device = RdmaDevice.over(this.#station(host).host);
      this.#devices.set(host, device);
    }
    return device;
  }

  /** Where packets for this host go. Throws ERR_ROCE_UNKNOWN_NAME if there is no such host. */
  address(host: string): IpAddress {
    return this.#station(host).address;
  }

  /**
   * `look` is called whenever packets or timers may have completed work at the host: a program polls its completion
   * queues there, and posts what comes next. Throws ERR_ROCE_UNKNOWN_NAME if there is no such host.
   */
  onActivity(host: string, look: () => void): void {
    checkKind('look', look, typeof look === 'function', 'a function');
    this.#station(host).host.onActivity = look;
  }

  /** Calls `action` when virtual time is `timeNs`, or at once in the next {@link run} if that has passed. */
  at(timeNs: number, action: () => void): void {
    checkTime('timeNs', timeNs);
    checkKind('action', action, typeof action === 'function', 'a function');
    this.#events.at(timeNs, action);
  }

  /**
   * Lets virtual time pass until `untilNs`, until `done()` holds, until `eventsMax` events have happened, or until
   * nothing is left to happen. Returns the number of events. Throws ERR_ROCE_INVALID_ARGUMENT for wrong limits.
   */
  run(limits: SimulationLimits = {}): number {
    checkOptions('run', limits, LIMITS);
    const { untilNs, done, eventsMax } = limits;
    if (untilNs !== undefined) checkTime('untilNs', untilNs);
    if (eventsMax !== undefined) checkTime('eventsMax', eventsMax);
    if (done !== undefined) checkKind('done', done, typeof done === 'function', 'a function');
    return this.#events.run({ ...limits, eventsMax: limits.eventsMax ?? EVENTS_MAX });
  }

  /**
   * Lets virtual time pass, and promises run between its events, until `outcome` has settled; then it settles alike. So
   * programs that wait for completions run as they do on a real device. Rejects with ERR_ROCE_INVALID_STATE if nothing
   * is left to happen, with ERR_ROCE_LIMIT after `eventsMax` events (default 1e9), and with ERR_ROCE_INVALID_ARGUMENT
   * for wrong arguments.
   */
  async until<T>(outcome: Promise<T>, eventsMax = EVENTS_MAX): Promise<T> {
    checkKind('outcome', outcome, outcome instanceof Promise, 'a promise');
    checkWhole('eventsMax', eventsMax, 1, Number.MAX_SAFE_INTEGER);
    const ended = await runUntilSettled(this.#events, outcome, eventsMax);
    if (ended === 'settled') return await outcome;
    const when = `at ${Math.round(this.nowNs)} ns of virtual time`;
    throw ended === 'limit'
      ? new RoceError('ERR_ROCE_LIMIT', `the promise has not settled after ${eventsMax} events, ${when}`)
      : new RoceError(
          'ERR_ROCE_INVALID_STATE',
          `nothing is left to happen ${when}, and the promise has not settled`,
          'wait only for packets and timers of the simulation',
        );
  }

  /** Resolves after this much virtual time, which passes in {@link run} and {@link until}. Nanoseconds. */
  sleep(ns: number): Promise<void> {
    checkTime('ns', ns);
    return new Promise((resolve) => this.#events.after(ns, resolve));
  }

  /**
   * `onFrame` takes each Ethernet frame that the host sends or receives, with virtual time; the bytes are valid during
   * the call. Throws ERR_ROCE_UNKNOWN_NAME if there is no such host.
   */
  observe(host: string, onFrame: (timeNs: number, frame: Uint8Array) => void): void {
    checkKind('onFrame', onFrame, typeof onFrame === 'function', 'a function');
    this.#station(host).onFrame = (bytes, offset, length) =>
      onFrame(this.nowNs, bytes.subarray(offset, offset + length));
  }

  /**
   * Bytes that wait in `switchName` for the link to `neighbour`. Throws ERR_ROCE_UNKNOWN_NAME if there is no such
   * switch or link.
   */
  queuedBytes(switchName: string, neighbour: string): number {
    const node = this.#switch(switchName);
    const ports = new Map(node.ports.map((port, number) => [port, number]));
    return node.queuedBytes(known(neighbour, ports, `neighbour of ${switchName}`));
  }

  /**
   * Counters of a switch, by the neighbour at the port: live, do not change them. Throws ERR_ROCE_UNKNOWN_NAME if there
   * is no such switch.
   */
  counters(switchName: string): Readonly<Record<string, Readonly<SwitchPortCounters>>> {
    return this.#switch(switchName).engine.counters;
  }

  /**
   * Takes a link `l0-p0`, or all links of a switch `p0`, out of service: they lose every frame until {@link repair}.
   * The switches use other paths `rerouteNs` later. Throws ERR_ROCE_UNKNOWN_NAME if there is no such link.
   */
  fail(what: string, rerouteNs = 0): void {
    this.#setLinks(what, false, rerouteNs);
  }

  /** Ends {@link fail}. Throws ERR_ROCE_UNKNOWN_NAME if there is no such link. */
  repair(what: string, rerouteNs = 0): void {
    this.#setLinks(what, true, rerouteNs);
  }

  #setLinks(what: string, isUp: boolean, rerouteNs: number): void {
    checkKind('the name of a link', what, typeof what === 'string', 'text, such as l0-p0');
    checkTime('rerouteNs', rerouteNs);
    this.#network.setLinks(this.#network.linksNamed(what), isUp);
    this.#events.after(rerouteNs, () => this.#network.reroute());
  }

  #station(host: string): SimStation {
    return known(host, this.#network.stations, 'host');
  }

  #switch(name: string): SimSwitch {
    return known(name, this.#network.switches, 'switch');
  }
}

function checkTime(name: string, value: unknown): void {
  checkKind(name, value, typeof value === 'number' && value >= 0, 'a number of at least 0');
}

function known<T>(name: string, all: ReadonlyMap<string, T>, kind: string): T {
  const found = all.get(name);
  if (found !== undefined) return found;
  throw new RoceError(
    'ERR_ROCE_UNKNOWN_NAME',
    `there is no ${kind} ${String(name)}`,
    namesHint(name, [...all.keys()], 'there are'),
  );
}
