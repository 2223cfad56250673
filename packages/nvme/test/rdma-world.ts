/** A target and a host on two simulated NICs: NVMe over RDMA in virtual time, with whatever the link does to packets. */

import type { Clock } from '../../../src/core/clock.js';
import { Permits } from '../../../src/core/permits.js';
import { RefusedPeers } from '../../../src/core/refused-peers.js';
import type { BlockDevice } from '../../../src/storage-rpc/disk/block-device.js';
import { MemoryDevice } from '../../../src/storage-rpc/disk/memory-device.js';
import { FairPool } from '../../../src/storage-rpc/pool/fair-pool.js';
import type { MemoryRegion } from '../../../src/verbs/memory-region.js';
import { connectQp, createPair, type Pair, type PairOptions } from '../../../test/support/pair.js';
import { pass, until } from '../../../test/support/virtual-time.js';
import { SimLink } from '../../lab/src/sim/sim-link.js';
import { virtualClock } from '../../lab/src/sim/virtual-clock.js';
import { NvmeDisk } from '../src/host/nvme-disk.js';
import { NvmeHost, type NvmeHostOptions } from '../src/host/nvme-host.js';
import { RdmaHostConnection } from '../src/host/rdma-host-connection.js';
import { RdmaTargetConnection } from '../src/rdma/rdma-target-connection.js';
import { NvmeTarget } from '../src/target.js';
import { ADDRESS_PART } from '../src/target-memory.js';

import { HOST_NQN, NQN, unpredictable } from './world.js';

const MTU = 4096;
const POOL_BYTES = 64 << 20;

export class RdmaWorld {
  readonly pair: Pair;
  readonly clock: Clock;
  readonly target: NvmeTarget;
  readonly memory: FairPool<MemoryRegion>;
  /** Ends of the connections, the newest last. */
  readonly connections: Array<{ host: RdmaHostConnection; target: RdmaTargetConnection }> = [];
  readonly #pulls = new Permits(4 << 20);
  #psn = 0x100;

  private constructor(pair: Pair, disk: BlockDevice) {
    this.pair = pair;
    this.clock = virtualClock(pair.events);
    this.memory = new FairPool(
      {
        allocate: (bytes) => pair.b.pd.regMr(bytes, 1),
        clock: this.clock,
        bytesMax: POOL_BYTES,
      },
      ADDRESS_PART,
    );
    this.target = new NvmeTarget({
      refusedPeers: new RefusedPeers('a host', undefined),
      subsystems: [{ nqn: NQN, serial: '1', namespaces: [{ nsid: 1, disk, uuid: Buffer.alloc(16, 9) }] }],
      clock: this.clock,
      firmware: '0.1.0',
      randomBytes: unpredictable,
    });
  }

  static async create(options: PairOptions & { disk?: BlockDevice } = {}): Promise<RdmaWorld> {
    const { disk = new MemoryDevice(2 << 20), ...pair } = options;
    return new RdmaWorld(await createPair({ mtu: MTU, memoryBytes: 4096, ...pair }), disk);
  }

  /** Connects a queue. Works only while the link lets commands through, which take no virtual time. */
  async dial(qid: number, entries: number): Promise<RdmaHostConnection> {
    const { a, b } = this.pair;
    const host = await RdmaHostConnection.create({
      pd: await a.device.createPd(),
      clock: this.clock,
      entries,
      poolBytesMax: 16 << 20,
    });
    const share = { memory: this.memory, pulls: this.#pulls };
    const remote = a.host.address.text;
    const target = await RdmaTargetConnection.create({ pd: b.pd, remote, qid, depth: entries, reads: 16, share });
    const psn = { a: this.#psn++, b: this.#psn++ };
    const own = { mtu: MTU, recovery: 'go-back-n' } as const;
    await connectQp(host.qp, { address: b.host.address, qpn: target.qp.qpn, psn: psn.b }, { ...own, psn: psn.a });
    await connectQp(target.qp, { address: a.host.address, qpn: host.qp.qpn, psn: psn.a }, { ...own, psn: psn.b });
    this.target.accept(target);
    target.start(() => {});
    this.connections.push({ host, target });
    return host;
  }

  async openDisk(options: Partial<NvmeHostOptions> = {}): Promise<NvmeDisk> {
    const host = await this.until(
      NvmeHost.connect({
        dial: (qid, entries) => this.dial(qid, entries),
        clock: this.clock,
        nqn: NQN,
        hostNqn: HOST_NQN,
        hostId: Buffer.alloc(16, 1),
        ioQueues: 2,
        entries: 32,
        keepAliveMs: 5000,
        ...options,
      }),
    );
    const [ns] = await this.until(host.namespaces());
    return new NvmeDisk(host, ns, () => host.close());
  }

  /** Nothing passes between the hosts until `heal`. */
  cut(): void {
    const { events, a, b } = this.pair;
    for (const { host } of [a, b]) host.connect(() => events.nowNs + 1000);
  }

  heal(): void {
    const { events, a, b } = this.pair;
    new SimLink(a.host, b.host, { events, rateBps: 10e9, delayNs: 2000 });
  }

  until<T>(outcome: Promise<T>): Promise<T> {
    return until(this.pair.events, outcome);
  }

  pass(ns: number): Promise<void> {
    return pass(this.pair.events, ns);
  }
}
