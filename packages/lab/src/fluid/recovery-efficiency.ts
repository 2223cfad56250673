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
