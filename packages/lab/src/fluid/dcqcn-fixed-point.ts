/**
 * The fixed point of DCQCN: equal shares, and the one marking probability that balances cuts and increases (CoNEXT'16,
 * section 3.1: the left side of the balance grows with p, so the solution is unique).
 */

import { checkFlows, checkParameters } from '../check-arguments.js';
import { DcqcnEvents } from './dcqcn-events.js';
import { type DcqcnInPackets, type DcqcnParameters, dcqcnInPackets } from './dcqcn-parameters.js';
import { bisect } from './root.js';

/** The state in which no derivative of the model moves (CoNEXT'16, section 3.1). */
export interface DcqcnFixedPoint {
  /** p*, 0..1: the share of packets marked. */
  readonly markProbability: number;
  /**
   * The queue at which RED marks that often; null when the probability lies above Pmax, where no queue length gives it.
   */
  readonly queueBytes: number | null;
  /** Per flow. */
  readonly rateBps: number;
  /** Per flow. */
  readonly targetRateBps: number;
  /** The sender's estimate of congestion, 0..1. */
  readonly alpha: number;
}

/**
 * The fixed point of `flows` equal flows. A single one never gets there: its target lies above the line rate that caps
 * it. Throws ERR_ROCE_OUT_OF_RANGE for less than one flow.
 */
export function dcqcnFixedPoint(parameters: DcqcnParameters, flows: number): DcqcnFixedPoint {
  const packets = dcqcnInPackets(parameters);
  const markProbability = exactMarkProbability(packets, flows);
  const rate = packets.capacity / flows;
  const events = new DcqcnEvents(packets);
  events.update(markProbability, rate);
  const bitsPerPacket = 8 * parameters.packetBytes;
  const onRamp = markProbability <= packets.pmax;
  return {
    markProbability,
    queueBytes: onRamp ? (packets.kmin + markProbability / packets.slope) * parameters.packetBytes : null,
    rateBps: rate * bitsPerPacket,
    targetRateBps: targetRate(packets, rate, events) * bitsPerPacket,
    alpha: events.alphaMarkProbability,
  };
}

/** p*: the root of a^2 alpha R = tau^2 R_AI (R b + R d)(R c + R e) at R = C/N. */
export function exactMarkProbability(packets: DcqcnInPackets, flows: number): number {
  checkFlows(flows);
  const rate = packets.capacity / flows;
  const events = new DcqcnEvents(packets);
  const imbalance = (logP: number): number => {
    events.update(Math.exp(logP), rate);
    const cuts = events.cutProbability ** 2 * events.alphaMarkProbability * rate;
    return cuts - packets.cnpInterval ** 2 * packets.additiveIncrease * events.recoveries * events.additiveIncreases;
  };
  return Math.exp(bisect(imbalance, Math.log(1e-15), -1e-15, 1e-14));
}

/** The published small-p approximation of p*, 15 to 70 % high; the authors' linearisation is built on it. */
export function approximateMarkProbability(packets: DcqcnInPackets, flows: number): number {
  checkFlows(flows);
  checkParameters('DCQCN', packets, ['additiveIncrease', 'alphaInterval', 'capacity', 'byteCounter', 'rateTimer']);
  const { additiveIncrease, alphaInterval, capacity, byteCounter, rateTimer } = packets;
  const eventsPerPacket = 1 / byteCounter + flows / (rateTimer * capacity);
  return Math.cbrt(((additiveIncrease * flows ** 2) / (alphaInterval * capacity ** 2)) * eventsPerPacket ** 2);
}

/** Rt*: where dRt/dt = 0, in packets/s. */
export function targetRate(packets: DcqcnInPackets, rate: number, events: DcqcnEvents): number {
  return rate + (events.additiveIncreases * packets.cnpInterval * packets.additiveIncrease) / events.cutProbability;
}
