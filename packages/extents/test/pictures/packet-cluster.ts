/** A cluster on simulated NICs: manager, nodes and a client on hosts around one switch, whose calls are packets. What passes their cables is captured. */

import { readFile } from 'node:fs/promises';
import { SeededRandom } from '../../../../src/core/random.js';
import { NS_PER_MS } from '../../../../src/core/units.js';
import { CaptureReader } from '../../../../src/port/capture/capture-reader.js';
import type { CapturedPacket } from '../../../../src/port/capture/captured-packet.js';
import { LINKTYPE_ETHERNET } from '../../../../src/port/capture/pcapng-blocks.js';
import { PcapngFile } from '../../../../src/port/capture/pcapng-file.js';
import { RdmaDevice } from '../../../../src/verbs/device.js';
import { connectPlayers } from '../../../../test/support/connections.js';
import { until } from '../../../../test/support/virtual-time.js';
import { EventQueue } from '../../../lab/src/sim/event-queue.js';
import { Network } from '../../../lab/src/sim/network.js';
import { virtualClock } from '../../../lab/src/sim/virtual-clock.js';
import { connectRpc, type RpcClient, type Service, serveRpc } from '../../../rpc/src/index.js';
import { RpcError } from '../../../rpc/src/rpc-error.js';
import { ExtentNode } from '../../src/extent-node.js';
import { ExtentReader } from '../../src/extent-reader.js';
import { ExtentStore } from '../../src/extent-store.js';
import { CONNECTION } from '../../src/live/peer-connector.js';
import { handlersOf, MANAGER_SERVICE, methodsOf, NODE_SERVICE } from '../../src/live/services.js';
import { MemoryMetadata } from '../../src/memory-metadata.js';
import type { Manager, NodeMethods, NodePlace, Nodes } from '../../src/messages.js';
import { RepairLoop } from '../../src/repair-loop.js';
import { StreamManager } from '../../src/stream-manager.js';
import { StreamWriter } from '../../src/stream-writer.js';
import { COMBINER } from '../cluster.js';
import { SimDisk } from '../sim-disk.js';

const NODES = 4;
const LINK = { rateBps: 10e9, delayNs: 2_000 };
const MTU = 4096;
const SEED = 20;
const CAPTURE_BYTES = 16 << 20;
/** Once the cluster has begun, reports and scrubbers are out of the picture for so long. */
const BACKGROUND_MS = 1_000;

const TIMING = {
  callMs: 5,
  copyMs: 400,
  reportMs: BACKGROUND_MS,
  scrubMs: 10 * BACKGROUND_MS,
  checkpointMs: 10_000,
  keepDeletedMs: 60_000,
  downMs: 2.5 * BACKGROUND_MS,
  forgetMs: 1_000 * BACKGROUND_MS,
  repairMs: BACKGROUND_MS,
  hedgeMs: 4,
  retryMs: 15,
  leaseMs: 100 * BACKGROUND_MS,
  codeAfterMs: 60,
};

/** A client waits longer for a primary than that one waits for its secondaries, as in `live/timing`. */
const CLIENT_PATIENCE = 4;
const EXTENT_BYTES = 1 << 20;

/** How a cluster differs from that of the pictures. */
export interface PacketClusterOptions {
  /** How long nodes wait for each other, milliseconds. */
  readonly callMs?: number;
  /** Bytes of records after which another extent begins. */
  readonly extentBytes?: number;
  /** The first secondary passes records on to the second one. The product has the primary send to both. */
  readonly isChain?: boolean;
}

/** The hosts from left to right, as pictures have them. */
export const HOSTS: readonly string[] = [
  'manager',
  'client',
  ...Array.from({ length: NODES }, (_, k) => `node${k + 1}`),
];

/** Who calls whom. */
interface Link {
  readonly from: string;
  readonly to: string;
  readonly service: Service;
}

/** One run, from `create` to `capture`. */
export class PacketCluster {
  readonly #events = new EventQueue();
  readonly #clock = virtualClock(this.#events);
  readonly #seeds = new SeededRandom(SEED);
  readonly #network: Network;
  readonly #file: PcapngFile | undefined;
  readonly #path: string;
  readonly #extentBytes: number;
  readonly #timing: typeof TIMING;
  readonly #clientTiming: typeof TIMING;
  readonly #isChain: boolean;
  /** Who comes after the first secondary, by primary and extent. */
  readonly #chains = new Map<string, readonly NodePlace[]>();
  readonly #devices = new Map<string, Promise<RdmaDevice>>();
  readonly #clients = new Map<string, Promise<RpcClient<Service>>>();
  readonly #serve = new Map<string, (method: string, request: object) => Promise<object>>();
  readonly #nodes = new Map<string, ExtentNode>();
  readonly #disks = new Map<string, SimDisk>();
  readonly #sentBytes = new Map<string, number>();

  private constructor(path: string, file: PcapngFile | undefined, options: PacketClusterOptions) {
    const { callMs = TIMING.callMs, extentBytes = EXTENT_BYTES, isChain = false } = options;
    this.#path = path;
    this.#file = file;
    this.#extentBytes = extentBytes;
    this.#isChain = isChain;
    this.#timing = { ...TIMING, callMs };
    this.#clientTiming = { ...TIMING, callMs: CLIENT_PATIENCE * callMs };
    const links = HOSTS.map((host) => ({ a: host, b: 'switch', ...LINK }));
    const topology = { hosts: HOSTS, switches: ['switch'], links };

    this.#network = new Network({
      topology,
      events: this.#events,
      random: this.#seeds,
      pathMtu: MTU,
      switchConfig: {},
    });
    for (const host of HOSTS)
      this.#network.station(host).onPacket = (isSent, _bytes, _offset, length) => {
        if (isSent) this.#sentBytes.set(host, this.sentBytes(host) + length);
      };
    if (file === undefined) return;
    for (const [k, host] of HOSTS.entries())
      this.#network.station(host).onFrame = (bytes, offset, length) => {
        file.writePacket(k, BigInt(Math.round(this.#events.nowNs)), bytes.subarray(offset, offset + length));
      };
  }

  /** Begins to capture to `path`. */
  static async create(path: string): Promise<PacketCluster> {
    const interfaces = HOSTS.map((name) => ({ name, linkType: LINKTYPE_ETHERNET }));
    const cluster = new PacketCluster(path, await PcapngFile.create(path, interfaces, CAPTURE_BYTES), {});
    await cluster.until(cluster.#start());
    return cluster;
  }

  /** Captures nothing. */
  static async unwatched(options: PacketClusterOptions): Promise<PacketCluster> {
    const cluster = new PacketCluster('', undefined, options);
    await cluster.until(cluster.#start());
    return cluster;
  }

  /** Bytes of all RoCE packets that have left a host, from the BTH to the ICRC. */
  sentBytes(host: string): number {
    return this.#sentBytes.get(host) ?? 0;
  }

  /** Virtual time, nanoseconds. */
  get nowNs(): number {
    return this.#events.nowNs;
  }

  /** Lets virtual time pass until this has settled. */
  until<T>(outcome: Promise<T>): Promise<T> {
    return until(this.#events, outcome);
  }

  /** Lets so much virtual time pass. */
  sleep(ms: number): Promise<void> {
    return this.until(new Promise((resolve) => this.#events.after(ms * NS_PER_MS, resolve)));
  }

  /** What was captured, and the address of each host. */
  async capture(): Promise<{ readonly packets: readonly CapturedPacket[]; readonly addresses: readonly string[] }> {
    await this.#file!.close();
    const packets = [...new CaptureReader(await readFile(this.#path))];
    return { packets, addresses: HOSTS.map((host) => this.#network.station(host).address.text) };
  }

  async #start(): Promise<void> {
    const metadata = new MemoryMetadata(this.#clock);
    await metadata.commit({ compare: [], put: [{ key: 'cluster', value: JSON.stringify('traced') }] });
    const manager = new StreamManager({
      metadata,
      nodes: this.nodesFrom('manager'),
      clock: this.#clock,
      random: this.#seeds.stream('manager'),
      timing: this.#timing,
      extentBytes: this.#extentBytes,
      confirmLead: async () => {},
      managers: async () => [],
    });
    await manager.start();
    this.#serve.set('manager', (method, request) => manager.handle(method as never, request as never));
    for (const host of HOSTS.slice(2)) await this.#startNode(host);
    new RepairLoop(manager).start();
  }

  async #startNode(host: string): Promise<void> {
    const disk = new SimDisk(this.#events, this.#seeds.stream(host));
    const manager = this.managerFrom(host);
    const store = await ExtentStore.open(disk.open(), () => manager.call('introduce', {}, TIMING.callMs));
    const node = new ExtentNode({
      store,
      nodes: this.nodesFrom(host),
      manager,
      combiner: COMBINER,
      clock: this.#clock,
      random: this.#seeds.stream(`${host} marks`),
      address: host,
      domain: host,
      folder: host,
      timing: this.#timing,
    });
    this.#disks.set(host, disk);
    this.#nodes.set(host, node);
    this.#serve.set(host, (method, request) => {
      const known = method === 'append' ? this.#firstOnly(host, request as NodeMethods['append'][0]) : request;
      return node.handle(method as never, known as never) as Promise<object>;
    });
    await node.start();
  }

  /** A host loses its power: nothing leaves it any more. */
  powerOff(host: string): void {
    this.#nodes.get(host)!.stop();
    this.#disks.get(host)!.powerLoss();
    this.#network.setLinks(this.#network.linksNamed(host), false);
  }

  /** A bit of the first record of an extent changes by itself on the disk of a host. */
  damage(host: string, extent: number): void {
    this.#disks.get(host)!.damage(`${extent}.extent`, 4096);
  }

  nodesFrom(from: string): Nodes {
    return {
      call: (place, method, request, timeoutMs) =>
        this.#call(
          { from, to: place.address, service: NODE_SERVICE },
          method,
          { ...request, ...(method === 'append' && this.#restOf(from, request as { extent: number })), to: place.node },
          timeoutMs,
        ),
    };
  }

  /** What the primary of a chain is told: of the first secondary alone. */
  #firstOnly(host: string, request: NodeMethods['append'][0]): NodeMethods['append'][0] {
    if (!this.#isChain || request.secondaries.length < 2) return request;
    const [first, ...rest] = request.secondaries;
    this.#chains.set(`${host} ${request.extent}`, rest);
    return { ...request, secondaries: [first] };
  }

  /** Whom the first secondary of a chain is told of. */
  #restOf(from: string, { extent }: { readonly extent: number }): object | undefined {
    const secondaries = this.#chains.get(`${from} ${extent}`);
    return secondaries && { secondaries };
  }

  managerFrom(from: string): Manager {
    return {
      call: (method, request, timeoutMs) =>
        this.#call({ from, to: 'manager', service: MANAGER_SERVICE }, method, request, timeoutMs),
    };
  }

  /** The client becomes the owner of a stream. */
  async writer(stream: string): Promise<StreamWriter> {
    const parts = { nodes: this.nodesFrom('client'), manager: this.managerFrom('client'), clock: this.#clock };
    await parts.manager.call('createStream', { stream }, TIMING.callMs);
    return (await StreamWriter.open({ stream, owner: 'client' }, { ...parts, timing: this.#clientTiming })).writer;
  }

  /** The client reads. */
  reader(): ExtentReader {
    return new ExtentReader({
      nodes: this.nodesFrom('client'),
      manager: this.managerFrom('client'),
      combiner: COMBINER,
      clock: this.#clock,
      random: this.#seeds.stream('reader'),
      timing: this.#clientTiming,
    });
  }

  async #call<T>(link: Link, method: string, request: object, timeoutMs: number): Promise<T> {
    const key = `${link.from}>${link.to}`;
    const client = this.#clients.get(key) ?? this.#connect(link);
    this.#clients.set(key, client);
    try {
      return (await methodsOf(await client)[method](request, { timeoutMs })) as T;
    } catch (error) {
      if (!(error instanceof RpcError)) this.#clients.delete(key);
      throw error;
    }
  }

  async #connect({ from, to, service }: Link): Promise<RpcClient<Service>> {
    const [a, b] = await Promise.all([this.#device(from), this.#device(to)]);
    const options = { random: this.#seeds.stream(`${from}>${to}`), mtu: MTU, newsNs: () => 0, ...CONNECTION };
    const hosts = { events: this.#events, a: { device: a }, b: { device: b } };
    const [mine, theirs] = await connectPlayers(hosts, options);
    serveRpc(
      theirs,
      service,
      handlersOf(service, (method, request) => this.#serve.get(to)!(method, request)),
    );
    return connectRpc(mine, service);
  }

  #device(host: string): Promise<RdmaDevice> {
    const known = this.#devices.get(host) ?? RdmaDevice.over(this.#network.station(host).host);
    this.#devices.set(host, known);
    return known;
  }
}
