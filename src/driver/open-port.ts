/** Builds the port an endpoint was asked for: socket or frame port, with fault rules and capture around it as wanted. */

import { CapturePort } from '../capture/capture-port.js';
import { LINKTYPE_RAW } from '../capture/pcapng-blocks.js';
import { PcapngFile } from '../capture/pcapng-file.js';
import { RoceError } from '../core/errors.js';
import { SeededRandom } from '../core/random.js';
import { parseUdpEndpoint } from '../dgram-ext/udp-endpoint.js';
import { openUdpPort } from '../dgram-ext/udp-port.js';
import { FaultPlan } from '../faults/fault-plan.js';
import { FaultyPort } from '../faults/faulty-port.js';
import { openFramePort } from '../frame-port/frame-port.js';
import { IpAddress } from '../packet/address.js';
import type { Port } from '../port/datagram.js';
import { systemRandom } from './system-random.js';

export interface PortOptions {
  /** The endpoint's IP address: a literal such as `127.0.0.1` or `::1`. */
  readonly address: string;
  /** UDP port to receive on; default 4791, where third parties send. Only for UDP ports. */
  readonly udpPort?: number;
  /** Ethernet frames inside UDP datagrams, to a software switch: `HOST:PORT` of this end and of the switch port. */
  readonly frame?: { readonly local: string; readonly remote: string };
  /** `off`: never use koffi to set socket options. Default `auto`. */
  readonly native?: 'auto' | 'off';
  /** Fault rules on what this endpoint sends and receives (docs/faults.md). */
  readonly loss?: string;
  /** Seed of random fault rules. Default 1. */
  readonly seed?: number;
  /** Writes everything sent and received to this pcapng file. */
  readonly pcap?: string;
}

/** An open port, and what has to be closed after it. */
export interface OpenPort {
  readonly port: Port;
  /** Resolves a peer's link-layer address ahead of the first packet, where the port needs that. */
  resolve(address: IpAddress): Promise<void>;
  close(): Promise<void>;
}

/** Throws ERR_ROCE_INVALID_ARGUMENT for options that make no sense and ERR_ROCE_IO when a socket or file cannot be had. */
export async function openPort(options: PortOptions): Promise<OpenPort> {
  const address = IpAddress.parse(options.address);
  const framePort = options.frame === undefined ? undefined : makeFramePort(options, address);
  let port: Port = framePort ?? openUdpPort(udpOptions(options, address));
  const capture =
    options.pcap === undefined
      ? undefined
      : await PcapngFile.create(options.pcap, [{ name: port.address.text, linkType: LINKTYPE_RAW }]);
  if (capture !== undefined) port = new CapturePort(port, capture, 0, wallClockNs());
  // Outside the capture: what a rule drops on the way out never was on the wire, what it drops on the way in was.
  if (options.loss !== undefined) {
    port = new FaultyPort(port, FaultPlan.parse(options.loss, new SeededRandom(options.seed ?? 1)));
  }
  try {
    await port.open();
  } catch (error) {
    await capture?.close();
    throw error;
  }
  return {
    port,
    resolve: async (peer) => {
      await framePort?.resolve(peer);
    },
    close: async () => {
      await port.close();
      await capture?.close();
    },
  };
}

function udpOptions(options: PortOptions, address: IpAddress) {
  return {
    address,
    ...(options.udpPort !== undefined && { udpPort: options.udpPort }),
    ...(options.native !== undefined && { native: options.native }),
  };
}

function makeFramePort(options: PortOptions, address: IpAddress) {
  if (options.udpPort !== undefined) {
    throw new RoceError(
      'ERR_ROCE_INVALID_ARGUMENT',
      'a frame port always receives RoCE on UDP port 4791',
      'leave udpPort out',
    );
  }
  return openFramePort({
    address,
    local: parseUdpEndpoint(options.frame!.local),
    remote: parseUdpEndpoint(options.frame!.remote),
    random: systemRandom(),
  });
}

/** Wall-clock time with the resolution of the monotonic clock. */
function wallClockNs(): () => bigint {
  const offset = BigInt(Date.now()) * 1_000_000n - process.hrtime.bigint();
  return () => offset + process.hrtime.bigint();
}
