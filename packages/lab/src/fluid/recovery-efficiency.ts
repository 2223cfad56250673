/**
 * The share of packets on the link that are of use, in closed form, for messages of M packets, when W packets follow a lost one before the
 * sender goes back (the depth of the pipeline). The formulas stand with the schemes: `efficiency` of their definitions.
 */

import { type LossModel as Losses, type RecoveryName, recoverySchemes } from 'rocev2/internal/retransmit';

/** What a loss rule does to the packets of one direction; `none`: nothing. */
export type LossModel = Losses | { readonly kind: 'none' };

/**
 * Useful packets / packets sent, 0..1; undefined where the scheme has no closed form for these losses. `pipelineDepth` is W, a mean. Throws
 * ERR_ROCE_UNKNOWN_NAME.
 */
export function closedFormEfficiency(
  scheme: RecoveryName,
  loss: LossModel,
  messagePackets: number,
  pipelineDepth: number,
): number | undefined {
  if (loss.kind === 'none') return 1;
  return recoverySchemes.get(scheme).efficiency?.(loss, messagePackets, pipelineDepth);
}
