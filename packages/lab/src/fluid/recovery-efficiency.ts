/**
 * The share of packets on the link that are of use, in closed form, for messages of M packets, when W packets follow a
 * lost one before the sender goes back (the depth of the pipeline).
 */

import { type LossModel as Losses, type RecoveryName, recoverySchemes } from 'rocev2/internal/retransmit';

export type OptionalLossModel = Losses | { readonly kind: 'none' };

export function closedFormEfficiency(
  scheme: RecoveryName,
  loss: OptionalLossModel,
  messagePackets: number,
  pipelineDepth: number,
): number | undefined {
  if (loss.kind === 'none') return 1;
  return recoverySchemes.get(scheme).efficiency?.(loss, messagePackets, pipelineDepth);
}

/** A packet is lost again so rarely that no more losses change the result. */
const LOSSES_MAX = 6;

/**
 * The share of time in which a window of S packets lets a scheme send that retransmits single packets, with round trips
 * of B packets. A packet that is lost k times is acknowledged after (k + 1) B, and holds the window, which ends S
 * packets after it. On average p^-k packets later the next one does so. The most limiting k counts: (S + p^-k) / ((k +
 * 1) B + p^-k).
 */
export function windowUse(loss: OptionalLossModel, windowPackets: number, roundTripPackets: number): number {
  const probability = loss.kind === 'random' ? loss.probability : loss.kind === 'regular' ? 1 / loss.period : 0;
  // A retransmission under a regular loss is not lost again, unless it is the K-th.
  const lossesMax = loss.kind === 'random' ? LOSSES_MAX : 1;
  let use = 1;
  for (let losses = 0; losses <= lossesMax; losses++) {
    const distance = probability ** -losses;
    const waited = (losses + 1) * roundTripPackets;
    if (windowPackets < waited && Number.isFinite(distance)) {
      use = Math.min(use, (windowPackets + distance) / (waited + distance));
    }
  }
  return use;
}
