/**
 * The share of packets on the link that are of use, in closed form, for messages of M packets, when W packets follow a lost one before the
 * sender goes back (the depth of the pipeline).
 *
 * One packet in K lost, regularly, retransmissions counted along:
 *   go-back-0         0 if M >= K: no K packets in a row arrive whole. Shorter messages get through by the phase of the count.
 *   go-back-N         1 - (W+1) / (k K), k = ceil((W+1) / K): of every k K packets sent, the last W+1 are sent in vain
 *   selective repeat  1 - 1/K
 * Each packet lost with probability p:
 *   go-back-N         (1-p) / (1 + p W)
 *   selective repeat  1 - p
 */

import type { RecoveryName } from '../retransmit/schemes.js';

/** What a loss rule does to the packets of one direction: one in `period`, K, or each by itself with `probability` p, 0..1. */
export type LossModel =
  | { readonly kind: 'none' }
  | { readonly kind: 'regular'; readonly period: number }
  | { readonly kind: 'random'; readonly probability: number };

/** Useful packets / packets sent, or undefined where there is no closed form. `pipelineDepth` is W, a mean. */
export function closedFormEfficiency(
  scheme: RecoveryName,
  loss: LossModel,
  messagePackets: number,
  pipelineDepth: number,
): number | undefined {
  if (loss.kind === 'none') return 1;
  if (loss.kind === 'regular') {
    const { period } = loss;
    if (scheme === 'selective-repeat') return 1 - 1 / period;
    if (scheme === 'go-back-0') return messagePackets >= period ? 0 : undefined;
    const wasted = pipelineDepth + 1;
    return 1 - wasted / (Math.ceil(wasted / period) * period);
  }
  const p = loss.probability;
  if (scheme === 'selective-repeat') return 1 - p;
  return scheme === 'go-back-n' ? (1 - p) / (1 + p * pipelineDepth) : undefined;
}
