/**
 * A topology brought to life: stations, switches and cables on one event queue. A switch's port has the name of the neighbour it leads to,
 * so that `s0>h2` is the egress queue of s0 towards h2.
 */

import type { SeededRandom } from '../core/random.js';
import type { FaultPlan } from '../faults/fault-plan.js';
import { Switch } from '../switch/switch.js';
import type { SwitchConfig } from '../switch/switch-config.js';
import { Cable, type FrameSink } from './cable.js';
import type { EventQueue } from './event-queue.js';
import type { ReceivePipelineOptions } from './receive-pipeline.js';
import { SimStation } from './sim-station.js';
import { SimSwitch } from './sim-switch.js';
import { shortestPaths, type Topology } from './topology.js';

interface NetworkOptions {
  readonly topology: Topology;
  readonly events: EventQueue;
  readonly random: SeededRandom;
  readonly pathMtu: number;
  /** Of every switch; rates of ports and routes follow from the topology. */
  readonly switchConfig: SwitchConfig;
  /** Hosts whose NIC takes packets in one after another. */
  readonly pipelineOf?: (host: string) => ReceivePipelineOptions | undefined;
  /** A plan of its own for every switch. */
  readonly faultsOf?: (switchName: string) => FaultPlan | undefined;
}

/** Ethernet, IP, UDP, BTH, the largest extension headers and the ICRC around a payload. */
const HEADER_BYTES_MAX = 160;

/** All nodes and cables of a scenario, by name. */
export class Network {
  /** Hosts, by name. */
  readonly stations: ReadonlyMap<string, SimStation>;
  /** Switches, by name. */
  readonly switches: ReadonlyMap<string, SimSwitch>;
  /** By `from>to`. */
  readonly cables: ReadonlyMap<string, Cable>;

  constructor(options: NetworkOptions) {
    const { topology, events, random, pathMtu } = options;
    const cables = new Map<string, Cable>();
    for (const { a, b, rateBps, delayNs } of topology.links) {
      const cable = { events, rateBps, delayNs, frameBytesMax: pathMtu + HEADER_BYTES_MAX };
      cables.set(`${a}>${b}`, new Cable(cable));
      cables.set(`${b}>${a}`, new Cable(cable));
    }
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
          frameBytesMax: pathMtu + HEADER_BYTES_MAX,
        };
        return [name, new SimStation(station)];
      }),
    );
    this.switches = this.#buildSwitches(options);
    for (const [key, cable] of cables) {
      const [from, to] = key.split('>');
      cable.connect(this.#sinkOf(from, to));
    }
  }

  /** The host of this name, which must exist. */
  station(name: string): SimStation {
    return this.stations.get(name)!;
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
          ...switchConfig,
          ports,
          portConfig,
          routes: [...routes.get(name)!].map(([host, to]) => ({ to: this.station(host).address.text, ports: to })),
          flood: false,
          hashSeed: index,
          random: random.stream(name),
          ...(faults !== undefined && { faults }),
        });
        return [name, new SimSwitch(engine, ports, events, cables)];
      }),
    );
  }

  #sinkOf(from: string, to: string): FrameSink {
    const station = this.stations.get(to);
    if (station !== undefined) return station.receive;
    return this.switches.get(to)!.sinkOf(this.switches.get(to)!.ports.indexOf(from));
  }
}

/** Light in fibre: 1.98e8 m/s. */
const METRES_PER_NS = 0.198;
