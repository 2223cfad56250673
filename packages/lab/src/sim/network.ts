/** A switch's port has the name of the neighbour it leads to, so that `s0>h2` is the egress queue of s0 towards h2. */

import { RoceError, type SeededRandom } from 'rocev2/internal/core';
import type { FaultPlan } from 'rocev2/internal/faults';
import { prioritiesOf } from '../switch/frame-classifier.js';
import { FramePool } from '../switch/frame-pool.js';
import { Switch } from '../switch/switch.js';
import type { RouteConfig, SwitchConfig } from '../switch/switch-config.js';
import type { ArrivalQueue } from './arrival-queue.js';
import { Cable, type SlotSink } from './cable.js';
import type { EventQueue } from './event-queue.js';
import { type LogicalProcess, WHOLE_NETWORK } from './logical-process.js';
import type { ReceivePipelineOptions } from './receive-pipeline.js';
import { SimStation } from './sim-station.js';
import { SimSwitch } from './sim-switch.js';
import { type LinkPlan, shortestPaths, type Topology } from './topology.js';
import { HEADERS_ONLY, VirtualPayload } from './virtual-payload.js';

interface NetworkOptions {
  readonly topology: Topology;
  readonly events: EventQueue;
  readonly random: SeededRandom;
  readonly pathMtu: number;
  readonly switchConfig: SwitchConfig;
  readonly pipelineOf?: (host: string) => ReceivePipelineOptions | undefined;
  readonly faultsOf?: (switchName: string) => FaultPlan | undefined;
  readonly extraBytes?: number | undefined;
  readonly virtualPayload?: VirtualPayloadOptions | undefined;
  readonly arrivals?: ArrivalQueue | undefined;
  /**
   * What of it is simulated here. All nodes are there, but those of other logical processes do nothing. Default: all.
   */
  readonly logicalProcess?: LogicalProcess | undefined;
}

interface VirtualPayloadOptions {
  readonly hasTrailers: boolean;
  /** Receivers may keep packets and compare them with copies. */
  readonly comparesPackets: boolean;
}

/** Ethernet, IP, UDP, BTH, the largest extension headers and the ICRC around a payload. */
const HEADER_BYTES_MAX = 160;

export class Network {
  readonly stations: ReadonlyMap<string, SimStation>;
  readonly switches: ReadonlyMap<string, SimSwitch>;
  readonly cables: ReadonlyMap<string, Cable>;
  /** All frames of the network are here: those on cables, in switches and in hosts. */
  readonly pool: FramePool;
  readonly #topology: Topology;
  readonly #logicalProcess: LogicalProcess;
  readonly #down = new Set<LinkPlan>();

  constructor(options: NetworkOptions) {
    const { topology, events, random, pathMtu, virtualPayload, logicalProcess = WHOLE_NETWORK } = options;
    this.#topology = topology;
    this.#logicalProcess = logicalProcess;
    const frameBytesMax = pathMtu + HEADER_BYTES_MAX;
    const pool = new FramePool(frameBytesMax, virtualPayload?.hasTrailers === false ? HEADERS_ONLY : undefined);
    this.pool = pool;
    const cables = buildCables(options, logicalProcess, pool);
    const readPayload = virtualPayload?.comparesPackets === true ? new VirtualPayload(frameBytesMax) : undefined;
    // Hosts sort their packets as the switches do; otherwise a pause would stop others than those that fill the queue.
    const priorities = prioritiesOf(options.switchConfig.classification ?? {});
    this.cables = cables;
    this.stations = new Map(
      topology.hosts.map((name, index) => {
        const cable = [...cables].find(([key]) => key.startsWith(`${name}>`))![1];
        const station = {
          index,
          events,
          random: random.stream(name),
          cable,
          pathMtuMax: pathMtu,
          pipeline: options.pipelineOf?.(name),
          carriesPayload: virtualPayload === undefined,
          virtualPayload: readPayload,
          priorityOfDscp: (dscp: number) => priorities[dscp],
          pool,
        };
        return [name, new SimStation(station)];
      }),
    );
    this.switches = this.#buildSwitches(options);
    for (const [key, cable] of cables) {
      const [from, to] = key.split('>');
      cable.connectOwner(this.#sinkOf(from, to));
    }
  }

  station(name: string): SimStation {
    return this.stations.get(name)!;
  }

  linksNamed(name: string): readonly LinkPlan[] {
    const [one, other] = name.split('-');
    const links = this.#topology.links.filter(
      ({ a, b }) => (a === one && (other ?? b) === b) || (b === one && (other ?? a) === a),
    );
    if (links.length > 0) return links;
    throw new RoceError('ERR_ROCE_UNKNOWN_NAME', `there is no link ${name}`, 'write a link as l0-p0, a node as p0');
  }

  /** Routes stay as they are until {@link reroute}. */
  setLinks(links: readonly LinkPlan[], isUp: boolean): void {
    for (const link of links) {
      if (isUp) this.#down.delete(link);
      else this.#down.add(link);
      for (const name of [`${link.a}>${link.b}`, `${link.b}>${link.a}`]) this.cables.get(name)!.isUp = isUp;
    }
  }

  reroute(): void {
    const routes = shortestPaths(this.#topology, this.#down);
    for (const [name, { engine }] of this.switches)
      if (this.#logicalProcess.owns(name)) engine.reroute(this.#routesOf(routes.get(name)!));
  }

  #routesOf(routes: ReadonlyMap<string, readonly string[]>): RouteConfig[] {
    return [...routes].map(([host, ports]) => ({ to: this.station(host).address.text, ports }));
  }

  #buildSwitches({
    topology,
    events,
    random,
    pathMtu,
    switchConfig,
    faultsOf,
  }: NetworkOptions): Map<string, SimSwitch> {
    const routes = shortestPaths(topology);
    return new Map(
      topology.switches.map((name, index) => {
        const ports = [...this.cables.keys()]
          .filter((key) => key.startsWith(`${name}>`))
          .map((key) => key.split('>')[1]);
        const cables = ports.map((port) => this.cables.get(`${name}>${port}`)!);
        const portConfig = Object.fromEntries(
          ports.map((port, i) => [
            port,
            {
              rateBps: cables[i].rateBps,
              cableMetres: cables[i].delayNs * METRES_PER_NS,
              ...switchConfig.portDefaults,
              ...switchConfig.portConfig?.[port],
            },
          ]),
        );
        const faults = faultsOf?.(name);
        const engine = new Switch({
          frameBytesMax: pathMtu + HEADER_BYTES_MAX,
          macTableEntries: 0, // Routes lead to all hosts.
          ...switchConfig,
          ports,
          portConfig,
          routes: this.#routesOf(routes.get(name)!),
          flood: false,
          hashSeed: index,
          random: random.stream(name),
          ...(faults !== undefined && { faults }),
          pool: this.pool,
        });
        return [name, new SimSwitch(engine, ports, events, cables)];
      }),
    );
  }

  #sinkOf(from: string, to: string): SlotSink {
    const station = this.stations.get(to);
    if (station !== undefined) return station.receive;
    return this.switches.get(to)!.sinkOf(this.switches.get(to)!.ports.indexOf(from));
  }
}

function buildCables(
  { topology, events, extraBytes = 0, arrivals }: NetworkOptions,
  logicalProcess: LogicalProcess,
  pool: FramePool,
): Map<string, Cable> {
  const cables = new Map<string, Cable>();
  for (const { a, b, rateBps, delayNs } of topology.links) {
    for (const [from, to] of [
      [a, b],
      [b, a],
    ]) {
      const isCut = logicalProcess.owns(from) && !logicalProcess.owns(to);
      cables.set(
        `${from}>${to}`,
        new Cable({
          events,
          rateBps,
          delayNs,
          pool,
          extraBytes,
          arrivals: arrivals?.cable(cables.size),
          depart: isCut ? logicalProcess.departureOf(cables.size) : undefined,
        }),
      );
    }
  }
  return cables;
}

/** Light in fibre: 1.98e8 m/s. */
const METRES_PER_NS = 0.198;
