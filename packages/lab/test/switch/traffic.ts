/** Frames and a bench for tests of the switch. Station i has MACS[i] and IPS[i] and stands at port i. */

import { IpAddress } from '../../../../src/packet/address.js';
import {
  BROADCAST_MAC,
  ETHERNET_BYTES,
  ETHERTYPE_IPV4,
  ETHERTYPE_IPV6,
  parseMac,
  writeEthernet,
} from '../../../../src/packet/ethernet.js';
import { IcrcFlow, sealIcrc } from '../../../../src/packet/icrc.js';
import { IP_PROTOCOL_UDP, IPV4_BYTES, writeIpv4 } from '../../../../src/packet/ipv4.js';
import { IPV6_BYTES, writeIpv6 } from '../../../../src/packet/ipv6.js';
import { RC_SEND_ONLY } from '../../../../src/packet/opcode.js';
import { PFC_FRAME_BYTES, PfcFrame, writePfc } from '../../../../src/packet/pfc.js';
import { writeBth } from '../../../../src/packet/roce.js';
import { UDP_BYTES, writeUdp } from '../../../../src/packet/udp.js';
import { Switch, type SwitchOptions } from '../../src/switch/switch.js';
import type { SwitchPortCounters } from '../../src/switch/switch-counters.js';
import type { EgressQueueUse } from '../../src/switch/switch-snapshot.js';

export const NAMES = ['a', 'b', 'c', 'd'] as const;
export type Name = (typeof NAMES)[number];
export const [A, B, C] = [0, 1, 2];
export const MACS = ['02:00:00:00:00:0a', '02:00:00:00:00:0b', '02:00:00:00:00:0c', '02:00:00:00:00:0d'].map(parseMac);
export const IPS = ['10.0.0.1', '10.0.0.2', '10.0.0.3', '10.0.0.4'].map((text) => IpAddress.parse(text));
const IPS_V6 = ['fd00::1', 'fd00::2', 'fd00::3', 'fd00::4'].map((text) => IpAddress.parse(text));
export const ROCE_OFFSET: number = ETHERNET_BYTES + IPV4_BYTES + UDP_BYTES;

/** A frame without IP. */
export function plainFrame(destination: Uint8Array, source: Uint8Array, mark = 0): Uint8Array {
  const bytes = new Uint8Array(60).fill(mark);
  writeEthernet(bytes, 0, destination, source, 0x88b5);
  return bytes;
}

export interface RoceFrameOptions {
  readonly psn?: number;
  readonly ipId?: number;
  readonly dscp?: number;
  readonly ecn?: number;
  readonly sourcePort?: number;
  readonly family?: 4 | 6;
  /** Length of the whole frame, a multiple of 4 beyond its headers. Default: 64 bytes of UDP payload. */
  readonly frameBytes?: number;
}

/** A sealed SEND_ONLY from one station to another. */
export function roceFrame(from: number, to: number, options: RoceFrameOptions = {}): Uint8Array {
  const { psn = 0, ipId = psn, dscp = 0, ecn = 0, sourcePort = 0xc000, family = 4 } = options;
  const ips = family === 4 ? IPS : IPS_V6;
  const headerBytes = ETHERNET_BYTES + (family === 4 ? IPV4_BYTES : IPV6_BYTES) + UDP_BYTES;
  const bytes = new Uint8Array(options.frameBytes ?? headerBytes + 64);
  const payloadBytes = bytes.length - headerBytes;
  const udpBytes = UDP_BYTES + payloadBytes;
  const trafficClass = (dscp << 2) | ecn;
  let o = writeEthernet(bytes, 0, MACS[to], MACS[from], family === 4 ? ETHERTYPE_IPV4 : ETHERTYPE_IPV6);
  o =
    family === 4
      ? writeIpv4(bytes, o, ips[from].bytes, ips[to].bytes, IP_PROTOCOL_UDP, trafficClass, 64, ipId, udpBytes)
      : writeIpv6(bytes, o, ips[from].bytes, ips[to].bytes, IP_PROTOCOL_UDP, trafficClass, 0, 64, udpBytes);
  o = writeUdp(bytes, o, sourcePort, 4791, payloadBytes);
  writeBth(bytes, o, RC_SEND_ONLY, 0, 17, true, psn);
  sealIcrc(new IcrcFlow(ips[from], ips[to], sourcePort, 4791), bytes, o, payloadBytes, ipId, undefined);
  return bytes;
}

/** A pause of some priorities by station `from`; 0 quanta end it. */
export function pauseFrame(from: number, quanta: number, priorities: readonly number[]): Uint8Array {
  const frame = new PfcFrame();
  for (const priority of priorities) {
    frame.enabled |= 1 << priority;
    frame.quanta[priority] = quanta;
  }
  const bytes = new Uint8Array(PFC_FRAME_BYTES);
  writePfc(bytes, 0, MACS[from], frame);
  return bytes;
}

export class SwitchBench {
  readonly switch: Switch;

  constructor(options: Partial<SwitchOptions> = {}) {
    this.switch = new Switch({ ports: NAMES, ...options });
  }

  /** Every station has spoken once, so that the switch knows them. */
  introduce(): this {
    MACS.forEach((mac, port) => {
      this.pass(port, plainFrame(BROADCAST_MAC, mac));
    });
    return this;
  }

  receive(port: number, bytes: Uint8Array, nowNs = 0): void {
    this.switch.receive(port, bytes, 0, bytes.length, nowNs);
  }

  /** A frame comes in; what leaves, by port. */
  pass(port: number, bytes: Uint8Array, nowNs = 0): Partial<Record<Name, Uint8Array[]>> {
    this.receive(port, bytes, nowNs);
    return this.drain(nowNs);
  }

  drain(nowNs = 0): Partial<Record<Name, Uint8Array[]>> {
    const left: Partial<Record<Name, Uint8Array[]>> = {};
    NAMES.forEach((name, port) => {
      const frames = this.takeAll(port, nowNs);
      if (frames.length > 0) left[name] = frames;
    });
    return left;
  }

  takeAll(port: number, nowNs = 0): Uint8Array[] {
    const frames: Uint8Array[] = [];
    for (let frame = this.takeOne(port, nowNs); frame !== undefined; frame = this.takeOne(port, nowNs))
      frames.push(frame);
    return frames;
  }

  takeOne(port: number, nowNs = 0): Uint8Array | undefined {
    const slot = this.switch.take(port, nowNs);
    if (slot < 0) return undefined;
    const frame = this.switch.frame(slot).slice();
    this.switch.release(slot);
    return frame;
  }

  /** Everything {@link Switch.nextReady} names. */
  ready(): number[] {
    const ports: number[] = [];
    for (let port = this.switch.nextReady(); port >= 0; port = this.switch.nextReady()) ports.push(port);
    return ports;
  }

  counters(name: Name): Readonly<SwitchPortCounters> {
    return this.switch.counters[name];
  }

  queue(name: Name, priority: number, nowNs = 0): EgressQueueUse {
    return this.switch.snapshot(nowNs).ports[name].egress[priority];
  }
}
