/**
 * In-band network telemetry at an egress: what a switch writes to the trailer of a packet that leaves
 * (packet/int-trailer.ts). A record of time, bytes sent, queue and line rate a hop for HPCC and PowerTCP, or the
 * utilization of the port as the digest of PINT, of which the largest of all hops stays.
 *
 * The utilization of a port, for every packet of `bytes` that leaves tau after the one before it (PINT, Ben Basat et
 * al., SIGCOMM 2020, §4.3):
 *
 *     U = (T - tau)/T U + q tau/(B T^2) + bytes/(B T)
 *
 * with the base round trip T, the line rate B and the queue q; tau is at most T. Ports without a known rate write
 * nothing.
 */

import { type RandomSource, randomUnit, readU16 } from 'rocev2/internal/core';
import {
  appendHop,
  BTH_TRAILER,
  ETHERNET_LINK_BYTES,
  encodeDigest,
  INT_DATA_DIGEST,
  INT_DATA_HOPS,
  IP_PROTOCOL_UDP,
  IPV4_BYTES,
  IPV6_BYTES,
  isPsp,
  nanoseconds,
  newHopRecord,
  raiseDigest,
  readIntKind,
  refreshUdpChecksum,
  UDP_BYTES,
} from 'rocev2/internal/packet';
import { ROCE_UDP_PORT } from 'rocev2/internal/port';
import type { IntConfig, SwitchPortConfig } from './switch-config.js';

/** HPCC's simulator at 100 Gb/s: the longest round trip of an idle network. */
const BASE_RTT_NS = 12_000;
const BITS_PER_BYTE = 8;
const TRAILED_BYTES_MIN = 20;

export interface Departure {
  bytes: Uint8Array;
  length: number;
  /** Where its IP header begins; 0 without one. */
  ipOffset: number;
  queueBytes: number;
  /** Bytes on the link that the port has sent before it: with preambles, check sequences and gaps. */
  sentBytes: number;
}

export class IntStamper {
  readonly #isOn: boolean;
  readonly #baseRttNs: number;
  readonly #random: RandomSource | undefined;
  readonly #rateBps: Float64Array;
  readonly #utilization: Float64Array;
  readonly #departedNs: Float64Array;
  #countsUtilization = false;
  readonly #hop = newHopRecord();

  /** `random` rounds digests so that their mean is right; without it they are rounded to the nearest. */
  constructor(config: IntConfig, ports: readonly SwitchPortConfig[], random: RandomSource | undefined) {
    this.#isOn = config.isOn ?? true;
    this.#baseRttNs = config.baseRttNs ?? BASE_RTT_NS;
    this.#random = random;
    this.#rateBps = Float64Array.from(ports, ({ rateBps }) => rateBps ?? Number.POSITIVE_INFINITY);
    this.#utilization = new Float64Array(ports.length);
    this.#departedNs = new Float64Array(ports.length).fill(Number.NEGATIVE_INFINITY);
  }

  /**
   * False for most frames without a request, by reading one byte: then {@link departing} need not be called. `bytes`
   * always has space for 64 bytes after the IP header, also for a shorter frame.
   */
  concerns(bytes: Uint8Array, ipOffset: number): boolean {
    if (this.#countsUtilization) return true;
    if (ipOffset === 0) return false;
    const bth = ipOffset + (bytes[ipOffset] >> 4 === 4 ? IPV4_BYTES : IPV6_BYTES) + UDP_BYTES;
    return (bytes[bth + 4] & BTH_TRAILER) !== 0;
  }

  departing(port: number, frame: Readonly<Departure>, nowNs: number): void {
    if (!this.#isOn || this.#rateBps[port] === Number.POSITIVE_INFINITY) return;
    if (this.#countsUtilization) this.#count(port, frame, nowNs);
    const { bytes, ipOffset } = frame;
    const udp = ipOffset + (bytes[ipOffset] >> 4 === 4 ? IPV4_BYTES : IPV6_BYTES);
    const bth = udp + UDP_BYTES;
    if (ipOffset === 0 || frame.length < bth + TRAILED_BYTES_MIN || (bytes[bth + 4] & BTH_TRAILER) === 0) return;
    const payloadBytes = readU16(bytes, udp + 4) - UDP_BYTES;
    if (!isRoce(bytes, ipOffset, udp) || bth + payloadBytes > frame.length) return;
    if (isPsp(bytes, bth, payloadBytes)) return; // What is authentic must stay as it is.
    const kind = readIntKind(bytes, bth, payloadBytes);
    const end = bth + payloadBytes;
    if (kind === INT_DATA_HOPS) this.#record(port, frame, end, nowNs);
    else if (kind === INT_DATA_DIGEST) this.#digest(port, frame, end, nowNs);
    else return;
    refreshUdpChecksum(bytes, ipOffset, udp);
  }

  #record(port: number, { bytes, queueBytes, sentBytes }: Readonly<Departure>, end: number, nowNs: number): void {
    const hop = this.#hop;
    hop.timeNs = nanoseconds(nowNs);
    hop.sentBytes = sentBytes % 0x1_0000_0000;
    hop.queueBytes = queueBytes;
    hop.rateBps = this.#rateBps[port];
    appendHop(bytes, end, hop);
  }

  #digest(port: number, frame: Readonly<Departure>, end: number, nowNs: number): void {
    if (!this.#countsUtilization) {
      this.#countsUtilization = true;
      this.#count(port, frame, nowNs);
    }
    const fraction = this.#random === undefined ? 0.5 : randomUnit(this.#random);
    raiseDigest(frame.bytes, end, encodeDigest(this.#utilization[port], fraction));
  }

  #count(port: number, { length, queueBytes }: Readonly<Departure>, nowNs: number): void {
    const baseNs = this.#baseRttNs;
    const bytesPerNs = this.#rateBps[port] / (BITS_PER_BYTE * 1e9);
    const tau = Math.min(baseNs, nowNs - this.#departedNs[port]) / baseNs;
    this.#departedNs[port] = nowNs;
    const share = (queueBytes * tau + length + ETHERNET_LINK_BYTES) / (bytesPerNs * baseNs);
    this.#utilization[port] = (1 - tau) * this.#utilization[port] + share;
  }
}

function isRoce(bytes: Uint8Array, ip: number, udp: number): boolean {
  const isV4 = bytes[ip] >> 4 === 4;
  if (isV4 && bytes[ip] !== 0x45) return false;
  return bytes[ip + (isV4 ? 9 : 6)] === IP_PROTOCOL_UDP && readU16(bytes, udp + 2) === ROCE_UDP_PORT;
}
