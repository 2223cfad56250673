/** A target and hosts in virtual time: over TCP as a delayed pipe, and over RDMA on simulated NICs. */

import type { Clock } from '../../../src/core/clock.js';
import { SeededRandom } from '../../../src/core/random.js';
import { RefusedPeers } from '../../../src/core/refused-peers.js';
import type { BlockDevice } from '../../../src/storage-rpc/disk/block-device.js';
import { MemoryDevice } from '../../../src/storage-rpc/disk/memory-device.js';
import type { Slab } from '../../../src/storage-rpc/pool/buffer-pool.js';
import { FairPool } from '../../../src/storage-rpc/pool/fair-pool.js';
import { createPipe, type PipeEnd } from '../../../test/storage-rpc/sk/pipe.js';
import { pass, until } from '../../../test/support/virtual-time.js';
import { EventQueue } from '../../lab/src/sim/event-queue.js';
import { virtualClock } from '../../lab/src/sim/virtual-clock.js';
import type { HostSecrets } from '../src/auth/target-authentication.js';
import { CommandFaults, parseCommandFaults } from '../src/command-faults.js';
import { NvmeDisk } from '../src/host/nvme-disk.js';
import { NvmeHost, type NvmeHostOptions } from '../src/host/nvme-host.js';
import { TcpHostConnection } from '../src/host/tcp-host-connection.js';
import type { ReservationStore } from '../src/reservations.js';
import { NvmeTarget } from '../src/target.js';
import { ADDRESS_PART } from '../src/target-memory.js';
import { TcpTargetConnection } from '../src/tcp/tcp-target-connection.js';

export const NQN = 'nqn.2026-11.example:disk';
/** A second subsystem, with a disk in memory. */
export const OTHER_NQN = 'nqn.2026-11.example:other';
export const HOST_NQN = 'nqn.2014-08.org.nvmexpress:uuid:00000000-0000-4000-8000-000000000001';
export const DISK_BYTES = 8 << 20;
const randomness = new SeededRandom(1).stream('authentication');
/** Bytes for authentication: the same in each run. */
export function unpredictable(count: number): Buffer {
  return Buffer.from(Array.from({ length: count }, () => randomness.u32() & 0xff));
}
const POOL_BYTES = 64 << 20;
const PIPE_DELAY_NS = 10_000;

export interface WorldOptions {
  disk?: BlockDevice;
  hosts?: readonly string[];
  readOnly?: boolean;
  poolBytesMax?: number;
  reservationStore?: ReservationStore;
  faults?: string;
  secrets?: ReadonlyMap<string, HostSecrets>;
  onNotice?: (notice: string) => void;
}

export class TcpWorld {
  readonly events = new EventQueue();
  readonly clock: Clock = virtualClock(this.events);
  readonly disk: BlockDevice;
  readonly memory: FairPool<Slab>;
  readonly target: NvmeTarget;
  /** Ends of the connections that hosts have made, the newest last. */
  readonly pipes: Array<{ host: PipeEnd; target: PipeEnd }> = [];

  constructor(options: WorldOptions = {}) {
    const {
      disk = new MemoryDevice(DISK_BYTES),
      hosts,
      readOnly = false,
      poolBytesMax = POOL_BYTES,
      reservationStore,
      faults,
      secrets,
      onNotice,
    } = options;
    this.disk = disk;
    this.memory = new FairPool<Slab>(
      {
        allocate: async (bytes) => ({ bytes: Buffer.alloc(bytes), close: async () => {} }),
        clock: this.clock,
        waitersMax: 65_536,
        bytesMax: poolBytesMax,
      },
      ADDRESS_PART,
    );
    const uuid = Buffer.from('00112233445566778899aabbccddeeff', 'hex');
    this.target = new NvmeTarget({
      refusedPeers: new RefusedPeers('a host', onNotice),
      subsystems: [
        {
          nqn: NQN,
          serial: '0123456789',
          namespaces: [{ nsid: 1, disk, uuid, readOnly, ...(reservationStore && { reservationStore }) }],
          ...(hosts !== undefined && { hosts }),
          ...(secrets !== undefined && { secrets }),
        },
        { nqn: OTHER_NQN, serial: '1', namespaces: [{ nsid: 1, disk: new MemoryDevice(DISK_BYTES), uuid }] },
      ],
      clock: this.clock,
      firmware: '0.1.0',
      randomBytes: unpredictable,
      ...(faults !== undefined && {
        faults: new CommandFaults(parseCommandFaults(faults), new SeededRandom(1).stream('faults')),
      }),
    });
  }

  /** A connection that the target has accepted, before anything is said on it. */
  pipe(portId = 1, from = '192.0.2.1'): PipeEnd {
    const [host, target] = createPipe(this.events, PIPE_DELAY_NS);
    this.pipes.push({ host, target });
    this.target.accept(new TcpTargetConnection(target, from, this), portId);
    return host;
  }

  connect(options: Partial<NvmeHostOptions> = {}, digests = { header: true, data: true }): Promise<NvmeHost> {
    return this.until(
      NvmeHost.connect({
        dial: () => TcpHostConnection.over(this.pipe(), digests),
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
  }

  async openDisk(options: Partial<NvmeHostOptions> = {}, digests = { header: true, data: true }): Promise<NvmeDisk> {
    const host = await this.connect(options, digests);
    const [ns] = await this.until(host.namespaces());
    return new NvmeDisk(host, ns, () => host.close());
  }

  until<T>(outcome: Promise<T>): Promise<T> {
    return until(this.events, outcome);
  }

  pass(ns: number): Promise<void> {
    return pass(this.events, ns);
  }
}
