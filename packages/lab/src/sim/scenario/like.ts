/**
 * The settings of other simulators and of hardware, for the rates of a scenario. Sources: `simulation/run.py` and the
 * defaults of `RdmaHw` of HPCC's simulator, `mix/config.txt` of ns3-rdma, {@link DCQCN_PRESETS} for mlx5.
 */

import { checkOneOf, RoceError } from 'rocev2/internal/core';
import { hostRateBps, type Topology } from '../topology.js';
import { parseScenario, type ScenarioFile } from './schema.js';
import { UnloadedTimes } from './slowdown.js';
import { topologyOf } from './topology-of.js';

/** Whose settings a scenario takes. */
export type Original = 'hpcc-ns3' | 'ns3-rdma' | 'mlx5';

/** The names of {@link Original}. */
export const ORIGINALS: readonly Original[] = ['hpcc-ns3', 'ns3-rdma', 'mlx5'];

type Control = Readonly<Record<string, unknown>>;

interface Settings {
  /** The parameters of each rate control that the original has. */
  readonly controls: Readonly<Record<string, Control>>;
  /** Marking by the rate of a port, for each rate control. */
  readonly marking: (control: string, rateBps: number) => object | undefined;
  /** Memory and pauses of switches. */
  readonly memory: object | undefined;
}

/** The shift of HPCC's switches: a lossless queue may hold an eighth of the free memory. */
const HPCC_ALPHA = 1 / 8;
const MIB = 2 ** 20;
/** A packet of ns3-rdma with its headers. */
const NS3_RDMA_FRAME_BYTES = 1030;

/**
 * `file` with the settings of `original`: parameters of the rate controls that it names, and marking, memory, pauses
 * and recovery where the file has none. Throws ERR_ROCE_MALFORMED for a file that is not a scenario. Throws
 * ERR_ROCE_CONFLICT if the original lacks a rate control of the file, or if hosts have links of different rates.
 */
export function like(file: unknown, original: Original): ScenarioFile {
  checkOneOf('original', original, ORIGINALS);
  const scenario = parseScenario(file);
  const topology = topologyOf(scenario.topology);
  const written = file as ScenarioFile;
  const settings = settingsOf(original, topology, scenario.nic.mtu);
  const names = new Set<string>();
  const converted = (cc: unknown): unknown => {
    const name = nameOf(cc);
    names.add(name);
    return { name, ...settings.controls[name] };
  };
  const flows = written.flows.map((flow) => ({
    ...flow,
    ...(flow.cc !== undefined && { cc: converted(flow.cc) }),
    ...(flow.sinkCc !== undefined && { sinkCc: converted(flow.sinkCc) }),
  }));
  const nic = { recovery: 'go-back-n', ...written.nic, cc: converted(written.nic?.cc ?? 'none') };
  const lacking = [...names].find((name) => !Object.hasOwn(settings.controls, name));
  if (lacking !== undefined) {
    throw new RoceError(
      'ERR_ROCE_CONFLICT',
      `${original} has no rate control ${lacking}`,
      `it has ${Object.keys(settings.controls).join(', ')}`,
    );
  }
  const ramps = [...names].map((name) => (rateBps: number) => settings.marking(name, rateBps));
  const rampOf = (rateBps: number) => ramps.map((ramp) => ramp(rateBps)).find((ramp) => ramp !== undefined);
  const { switch: config = {} } = written;
  const hasMemory = config.pfc !== undefined || config.buffer !== undefined || config.queuePackets !== undefined;
  const ecn = config.ecn === undefined ? rampOf(hostRateBps(topology)) : undefined;
  const portConfig: Record<string, object> = { ...config.portConfig };
  if (ecn !== undefined) {
    // A port has the name of its neighbour.
    for (const { a, b, rateBps } of topology.links) {
      for (const port of [a, b]) {
        if (rateBps !== hostRateBps(topology)) portConfig[port] = { ecn: rampOf(rateBps), ...portConfig[port] };
      }
    }
  }
  return {
    ...written,
    nic,
    switch: {
      ...(!hasMemory && settings.memory),
      ...config,
      ...(ecn !== undefined && { ecn }),
      ...(Object.keys(portConfig).length > 0 && { portConfig }),
    },
    flows,
  } as ScenarioFile;
}

function nameOf(cc: unknown): string {
  return typeof cc === 'string' ? cc : (cc as { readonly name: string }).name;
}

function settingsOf(original: Original, topology: Topology, mtu: number): Settings {
  const rateBps = hostRateBps(topology);
  switch (original) {
    case 'hpcc-ns3':
      return hpccNs3(rateBps, () => longestRoundTripNs(topology, mtu));
    case 'ns3-rdma':
      return ns3Rdma(rateBps);
    case 'mlx5':
      return {
        controls: { none: {}, dcqcn: { preset: 'mlx5', linkRateBps: rateBps } },
        marking: () => undefined,
        memory: undefined,
      };
  }
}

/** Of a full packet and its acknowledgement between any two hosts, without queues. */
function longestRoundTripNs(topology: Topology, mtu: number): number {
  const unloaded = new UnloadedTimes(topology, mtu);
  let longestNs = 0;
  for (const [i, from] of topology.hosts.entries()) {
    for (const to of topology.hosts.slice(i + 1)) longestNs = Math.max(longestNs, unloaded.ns(from, to, mtu));
  }
  return longestNs;
}

function hpccNs3(rateBps: number, baseRttNs: () => number): Settings {
  // run.py writes 1000 Mb/s, which ten flows at 10 Gb/s cannot keep; this is the default of the simulator.
  const bounds = { linkRateBps: rateBps, minimumRateBps: 100e6 };
  const window = () => ({
    ...bounds,
    baseRttNs: baseRttNs(),
    targetUtilization: 0.95,
    increaseStages: 0,
    additiveIncreaseBps: 10e6 * (rateBps / 25e9),
  });
  return {
    controls: {
      none: {},
      get hpcc() {
        return window();
      },
      get 'hpcc-pint'() {
        return window();
      },
      dcqcn: {
        preset: 'hpcc',
        ...bounds,
        firstCnpRateBps: rateBps,
        additiveIncreaseBps: 5e6 * (rateBps / 25e9),
        hyperIncreaseBps: 50e6 * (rateBps / 25e9),
      },
      timely: { ...bounds, additiveIncreaseBps: 10e6 * (rateBps / 10e9), proportionalSteps: 0 },
      dctcp: { ...bounds, gain: 1 / 16, additiveIncreaseBps: 615e6 },
    },
    marking: (control, portBps) => {
      const kilobytes = (at25Gbps: number) => (1000 * at25Gbps * portBps) / 25e9;
      if (control === 'dcqcn') return { kind: 'red', kminBytes: kilobytes(100), kmaxBytes: kilobytes(400), pmax: 0.2 };
      if (control === 'dctcp') return { kind: 'red', kminBytes: kilobytes(75), kmaxBytes: kilobytes(75), pmax: 1 };
      return undefined;
    },
    memory: {
      pfc: { priorities: [0] },
      buffer: { totalBytes: Math.round((16 * MIB * rateBps) / 50e9), losslessAlpha: HPCC_ALPHA },
    },
  };
}

function ns3Rdma(rateBps: number): Settings {
  return {
    controls: { none: {}, dcqcn: { preset: 'ns3-rdma', linkRateBps: rateBps } },
    marking: (control) =>
      control === 'dcqcn'
        ? { kind: 'red', kminBytes: 40 * NS3_RDMA_FRAME_BYTES, kmaxBytes: 1000 * NS3_RDMA_FRAME_BYTES, pmax: 1 }
        : undefined,
    memory: {
      pfc: { priorities: [0] },
      buffer: { totalBytes: 9 * MIB, losslessAlpha: 16, reservedBytes: NS3_RDMA_FRAME_BYTES },
      portDefaults: { headroomBytes: 100 * NS3_RDMA_FRAME_BYTES },
    },
  };
}
