import { RoceError } from '../core/errors.js';
import { SeededRandom } from '../core/random.js';
import { type BatchedUdpPort, openBatchedUdpPort } from '../dgram-ext/batched-udp-port.js';
import { pathMtuForAddress, pathMtuForLink } from '../dgram-ext/link-mtu.js';
import { parseUdpEndpoint } from '../dgram-ext/udp-endpoint.js';
import { openUdpPort } from '../dgram-ext/udp-port.js';
import type { MemoryMapping } from '../memory/mapped/memory-mapping.js';
import { COUNTER, COUNTER_NAMES } from '../memory/ring/counters.js';
import type { ProtectionMode } from '../memory/ring/protection.js';
import type { NicTuning } from '../nic/nic.js';
import { IpAddress } from '../packet/address.js';
import { PSP_OVERHEAD_BYTES } from '../packet/psp.js';
import type { PcapngFile } from '../port/capture/pcapng-file.js';
import type { TraceFile } from '../port/capture/trace-file.js';
import type { TracePort } from '../port/capture/trace-port.js';
import type { Port } from '../port/datagram.js';
import type { SecurePort } from '../port/secure/secure-port.js';
import type { SharedMemoryPort } from '../port/shm/shm-port.js';
import { chooseCrc32 } from './crc32/crc32-choice.js';
import { FRAME_PORTS } from './frame-port-loader.js';
import { HostNetworkInfo } from './host-network-info.js';
import { INSTRUMENTS, type Instruments } from './instruments-loader.js';
import { refuseForeignRuntime } from './js-runtime.js';
import { PACING_CATCH_UP_NS } from './nic-poller.js';
import { chooseIo, type PortIo } from './port-io.js';
import { SECURE_PORTS } from './secure-loader.js';
import { SHARED_MEMORY_PORTS, type SharedMemoryPorts } from './shm-loader.js';
import { nowNs, SYSTEM_CLOCK, wallClockNs, wallMs } from './system-clock.js';
import { systemRandom } from './system-random.js';

const RATE_INTERVAL_MS = 1;
const FRAME_MTU_BYTES = 9000;

/** How a device is reached. Only `address` is required. */
export interface PortOptions {
  /** The endpoint's IP address: a literal such as `127.0.0.1` or `::1`. */
  readonly address: string;
  /** UDP port to receive on; default 4791, where third parties send. Only for UDP ports. */
  readonly udpPort?: number | undefined;
  /** Ethernet frames inside UDP datagrams, to a software switch or a QEMU guest. */
  readonly frame?:
    | {
        /** `HOST:PORT` of this end. */
        readonly local: string;
        /** `HOST:PORT` of the other end. */
        readonly remote: string;
        /** Largest IP packet of the emulated link; default 9000. A guest's interface usually has 1500. */
        readonly mtuBytes?: number | undefined;
        /** Its speed, default 10 Gb/s: needed where the switch sends pause frames, which count bit times. */
        readonly rateBps?: number | undefined;
        /**
         * Priorities of single DSCPs, 0 to 7, as the switch has them (`classification.dscpToPriority`), so that its
         * pauses stop the right packets. Default: the upper three bits of a DSCP.
         */
        readonly dscpToPriority?: Readonly<Record<number, number>> | undefined;
      }
    | undefined;
  /** `off`: never use koffi, neither for socket options nor for ciphers; then `io` is dgram. Default `auto`. */
  readonly native?: 'auto' | 'off' | undefined;
  /**
   * How datagrams get in and out of a UDP port. `dgram`: node:dgram. `mmsg`: batched, Linux with koffi. `shm`: mmsg,
   * and memory shared with peers of this user on this host. `auto`: mmsg where it can be had, and shared memory where
   * an exchange finds that both ends can. Default dgram on the caller's event loop.
   */
  readonly io?: PortIo | undefined;
  /**
   * Where `io` shares memory with a peer of this host, its WRITEs, READs and atomics of memory from `device.allocate`
   * or `regMr(bytes)` are copies by the requester, without packets. Packets are used where they are observed (`loss`,
   * `pcap`, `trace`) or paced by a rate control. `false`: always. Default true.
   */
  readonly mapRegions?: boolean | undefined;
  /** Fault rules on what this endpoint sends and receives (docs/faults.md). */
  readonly loss?: string | undefined;
  /** Seed of random fault rules. Default 1. */
  readonly seed?: number | undefined;
  /** Writes everything sent and received to this pcapng file. */
  readonly pcap?: string | undefined;
  /** Writes what the NIC sends, receives and does about it to this file, as JSON lines (docs/events.md). */
  readonly trace?: string | undefined;
}

export interface ProtectedPortOptions extends PortOptions {
  readonly protection?: ProtectionMode;
}

export interface OpenPort {
  readonly port: Port;
  readonly description: string;
  /**
   * The batched port at the bottom, if it is one. The poll loop may read it, and waits for it if it was opened as
   * `polled`.
   */
  readonly batched: BatchedUdpPort | undefined;
  readonly trace: TracePort | undefined;
  readonly protection: SecurePort | undefined;
  readonly tuning: NicTuning;
  /** Counts what it drops and protects here from now on. */
  countInto(counters: Float64Array): void;
  resolve(address: IpAddress, sharingPort?: number): Promise<boolean>;
  unshare(address: IpAddress, udpPort: number): void;
  readonly memoryDomain: string | undefined;
  readonly mapping: MemoryMapping | undefined;
  readonly hostInfo: HostNetworkInfo | undefined;
  /** Rejects with ERR_ROCE_IO when those could not be written. */
  close(): Promise<void>;
}

/** `driving`: a batched port is left to the caller to poll. */
export async function openPort(
  options: ProtectedPortOptions,
  driving: 'itself' | 'polled' = 'itself',
): Promise<OpenPort> {
  refuseForeignRuntime();
  const address = IpAddress.parse(options.address);
  const crc32 = chooseCrc32();
  const isObserved = [options.pcap, options.loss, options.trace].some((option) => option !== undefined);
  const instruments = isObserved ? await INSTRUMENTS.load() : undefined;
  const tuning = await tuningOf(options);
  const framePort = options.frame === undefined ? undefined : await makeFramePort(options, address);
  const isBare = !isObserved && options.protection === undefined;
  const udp = framePort === undefined ? await makeBatchedPort(options, address, driving, isBare) : undefined;
  const batched = udp?.port;
  let port: Port = framePort ?? batched ?? openUdpPort(udpOptions(options, address));
  let counters: Float64Array = new Float64Array(COUNTER_NAMES.length);
  let capture: PcapngFile | undefined;
  if (options.pcap !== undefined) {
    const { PcapngFile, LINKTYPE_RAW, CapturePort } = instruments!;
    capture = await PcapngFile.create(options.pcap, [{ name: port.address.text, linkType: LINKTYPE_RAW }]);
    port = new CapturePort(port, capture, 0, wallClockNs());
  }
  // Outside the capture: a sent packet that a rule drops was never on the wire; a received one was.
  if (options.loss !== undefined) {
    const { FaultyPort, FaultPlan } = instruments!;
    port = new FaultyPort(
      port,
      FaultPlan.parse(options.loss, new SeededRandom(options.seed ?? 1), ['host', 'wire']),
      SYSTEM_CLOCK,
      (...dropped) => {
        counters[COUNTER.fault_dropped]++;
        trace?.faultDropped(...dropped);
      },
    );
  }
  // Outside faults and capture, which see the packets on the wire; inside the trace, which records the NIC.
  const protection = options.protection === undefined ? undefined : await protect(port, options, options.protection);
  port = protection ?? port;
  const traceFile =
    options.trace === undefined ? undefined : await createTrace(instruments!, options.trace, port, capture);
  const trace = traceFile === undefined ? undefined : new instruments!.TracePort(port, traceFile);
  port = trace ?? port;
  const timer = trace === undefined ? undefined : setInterval(() => trace.sampleRates(), RATE_INTERVAL_MS);
  timer?.unref();
  const closeFiles = async () => {
    clearInterval(timer);
    await capture?.close();
    await traceFile?.close();
  };
  try {
    await port.open();
  } catch (error) {
    await closeFiles();
    throw error;
  }
  return {
    port,
    description: `${port.description}${udp?.mapping === undefined ? '' : ', mapped regions'}, CRC-32 by ${crc32}`,
    batched,
    trace,
    protection,
    tuning,
    countInto: (shared) => {
      counters = shared;
      protection?.countInto(shared);
    },
    resolve: async (peer, sharingPort) => {
      await framePort?.resolve(peer);
      return sharingPort !== undefined && (await udp?.sharing?.share(peer, sharingPort)) === true;
    },
    unshare: (peer, itsPort) => udp?.sharing?.unshare(peer, itsPort),
    memoryDomain: udp?.memoryDomain,
    mapping: udp?.mapping,
    hostInfo: framePort === undefined ? new HostNetworkInfo(port.address, port.udpPort) : undefined,
    close: async () => {
      await port.close();
      await closeFiles();
    },
  };
}

async function tuningOf({ frame }: PortOptions): Promise<NicTuning> {
  const tuning = { pacingCatchUpNs: PACING_CATCH_UP_NS };
  if (frame?.dscpToPriority === undefined) return tuning;
  const priorities = (await FRAME_PORTS.load()).prioritiesOfDscps(frame.dscpToPriority);
  return { ...tuning, priorityOfDscp: (dscp) => priorities[dscp] };
}

async function createTrace(
  { TraceFile }: Instruments,
  path: string,
  port: Port,
  capture: PcapngFile | undefined,
): Promise<TraceFile> {
  try {
    return await TraceFile.create(path, port.description, { nowNs, wallMs });
  } catch (error) {
    await capture?.close();
    throw error;
  }
}

async function protect(port: Port, { io, frame, native }: PortOptions, mode: ProtectionMode): Promise<SecurePort> {
  if (io === 'shm') {
    throw new RoceError(
      'ERR_ROCE_CONFLICT',
      'shared memory shows packets to other programs of this user before they are sealed',
      'leave io: shm or secure out',
    );
  }
  const room =
    frame === undefined
      ? pathMtuForAddress(port.address, PSP_OVERHEAD_BYTES)
      : pathMtuForLink((frame.mtuBytes ?? FRAME_MTU_BYTES) - PSP_OVERHEAD_BYTES);
  const pathMtuMax = Math.min(port.pathMtuMax, room);
  const { SecurePort, chooseCipher, nodeCrypto } = await SECURE_PORTS.load();
  const { name, make } = native === 'off' ? nodeCrypto() : chooseCipher();
  return new SecurePort(port, { mode, nowNs, makeCipher: make, cipherName: name, pathMtuMax });
}

interface BatchedPort {
  readonly port: BatchedUdpPort;
  readonly sharing?: SharedMemoryPort;
  readonly memoryDomain?: string | undefined;
  readonly mapping?: MemoryMapping | undefined;
}

async function makeBatchedPort(
  options: PortOptions,
  address: IpAddress,
  driving: 'itself' | 'polled',
  isBare: boolean,
): Promise<BatchedPort | undefined> {
  const { io = 'dgram', native, udpPort } = options;
  if (native === 'off') {
    if (io !== 'mmsg' && io !== 'shm') return undefined;
    throw new RoceError('ERR_ROCE_CONFLICT', `${io} is made of native calls`, "leave native: 'off' out");
  }
  if (chooseIo(io, driving).io === 'dgram') return undefined;
  const polled = driving === 'polled';
  const batched = { address, polled, nowNs, ...(udpPort !== undefined && { udpPort }) };
  const borrows = isBare; // Wrappers around the port read the slots.
  // Observers and fault rules apply to packets of the network.
  const sharing = io === 'shm' || (io === 'auto' && isBare) ? await loadSharing(io) : undefined;
  if (sharing === undefined) return { port: openBatchedUdpPort({ ...batched, borrows }) };
  const ring = { random: systemRandom(), streams: borrows };
  const port =
    io === 'shm'
      ? sharing.openShmPort({ ...batched, ...ring })
      : sharing.openShmPort({ ...batched, ...ring, borrows, offers: 'named' });
  const mapping = isBare && options.mapRegions !== false ? sharing.memoryMapping(false) : undefined;
  return { port, sharing: port, memoryDomain: sharing.memoryDomain(), mapping };
}

function loadSharing(io: 'shm' | 'auto'): Promise<SharedMemoryPorts | undefined> {
  return io === 'shm' ? SHARED_MEMORY_PORTS.load() : SHARED_MEMORY_PORTS.loadIfPresent();
}

function udpOptions(options: PortOptions, address: IpAddress) {
  return {
    address,
    ...(options.udpPort !== undefined && { udpPort: options.udpPort }),
    ...(options.native !== undefined && { native: options.native }),
  };
}

async function makeFramePort(options: PortOptions, address: IpAddress) {
  if (options.io === 'mmsg' || options.io === 'shm') {
    throw new RoceError('ERR_ROCE_CONFLICT', 'a frame port does its own I/O', 'leave io out');
  }
  if (options.udpPort !== undefined) {
    throw new RoceError('ERR_ROCE_CONFLICT', 'a frame port always receives RoCE on UDP port 4791', 'leave udpPort out');
  }
  const { local, remote, mtuBytes, rateBps } = options.frame!;
  const { openFramePort } = await FRAME_PORTS.load();
  return openFramePort({
    address,
    local: parseUdpEndpoint(local),
    remote: parseUdpEndpoint(remote),
    ...(mtuBytes !== undefined && { mtuBytes }),
    ...(rateBps !== undefined && { rateBps }),
    random: systemRandom(),
    nowNs,
  });
}
