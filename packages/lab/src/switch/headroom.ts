/**
 * Headroom for data that still arrives after an XOFF: the frame before the pause frame, the cable in both directions,
 * the peer's response time and the frame it has begun. The model is SONiC's for Mellanox switches, whose cables hold
 * 1000/1024 of the ones here.
 */

import { checkObject } from 'rocev2/internal/core';
import { checkNumber } from '../check-arguments.js';

const PROPAGATION_METRES_PER_SECOND = 1.98e8;
const QUANTUM_BYTES = 64;
const MAC_PHY_BYTES = 819.2;
const KIB = 1024;
const RATE_BPS_MAX = 1e13;
const CABLE_METRES_MAX = 1e6;
const FRAME_BYTES_MAX = 2 ** 20;

/** Response time IEEE 802.3 annex 31B allows a station, in quanta, for links up to this many bits per second. */
const RESPONSE_QUANTA: ReadonlyArray<readonly [rateBps: number, quanta: number]> = [
  [10e9, 67],
  [25e9, 80],
  [40e9, 118],
  [50e9, 147],
  [100e9, 394],
  [200e9, 453],
  [Number.POSITIVE_INFINITY, 905],
];

/** A link, and what may be in flight on it. */
export interface HeadroomModel {
  /** Bits per second. */
  readonly rateBps: number;
  /** Length of the cable. */
  readonly cableMetres: number;
  /** The longest frame that may precede the pause frame. */
  readonly portMtuBytes: number;
  /** The longest frame of a lossless priority. */
  readonly losslessMtuBytes: number;
  /** Memory is given out in cells of this size; a 64-byte packet fills one. */
  readonly cellBytes: number;
  /** 0..100: how much of the traffic is such packets. */
  readonly smallPacketPercent: number;
}

/** Bytes a lossless ingress queue needs after its XOFF, a multiple of 1 KiB. */
export function headroomBytes(model: HeadroomModel): number {
  checkObject('the link', model, 'an object: rateBps, cableMetres, portMtuBytes, losslessMtuBytes, cellBytes');
  checkNumber('rateBps', model.rateBps, 1, RATE_BPS_MAX);
  checkNumber('cableMetres', model.cableMetres, 0, CABLE_METRES_MAX);
  for (const name of ['portMtuBytes', 'losslessMtuBytes', 'cellBytes'] as const) {
    checkNumber(name, model[name], 1, FRAME_BYTES_MAX);
  }
  checkNumber('smallPacketPercent', model.smallPacketPercent, 0, 100);
  const { rateBps, cellBytes, smallPacketPercent } = model;
  const cell = cellBytes > 128 ? cellBytes / 64 : (2 * cellBytes) / (1 + cellBytes);
  const occupancy = (100 - smallPacketPercent + smallPacketPercent * cell) / 100;
  const cableBytes = ((2 * model.cableMetres) / PROPAGATION_METRES_PER_SECOND) * (rateBps / 8);
  const responseBytes = RESPONSE_QUANTA.find(([limit]) => rateBps <= limit)![1] * QUANTUM_BYTES;
  const underWay = model.portMtuBytes + cableBytes + MAC_PHY_BYTES + responseBytes;
  return Math.ceil((model.losslessMtuBytes + underWay * occupancy) / KIB) * KIB;
}
