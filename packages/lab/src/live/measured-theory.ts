import type { CounterName } from 'rocev2/internal/memory';
import { type RecoveryName, senderTraits } from 'rocev2/internal/retransmit';
import { lossModelOf } from '../fluid/loss-model.js';
import { closedFormEfficiency } from '../fluid/recovery-efficiency.js';

export interface MeasuredTheory {
  /**
   * W of go-back-N: packets sent, on average, between a loss and the restart. Null for the other schemes, or without a
   * loss.
   */
  readonly pipelineDepth: number | null;
  /** The efficiency in closed form for this W; null where there is none. */
  readonly closedForm: number | null;
}

/** The closed form of `scheme` for the counters of a sender whose port lost packets by `lossRule`. */
export function measuredTheory(
  scheme: RecoveryName,
  lossRule: string | undefined,
  messagePackets: number,
  counters: Readonly<Partial<Record<CounterName, number>>>,
): MeasuredTheory {
  const { goesBack, restartsMessages } = senderTraits(scheme);
  const rewinds = goesBack && !restartsMessages ? (counters.retry_rewinds ?? 0) : 0;
  const pipelineDepth = rewinds === 0 ? null : (counters.retry_rewind_packets ?? 0) / rewinds;
  const model = lossModelOf(lossRule);
  const closedForm =
    model === undefined ? undefined : closedFormEfficiency(scheme, model, messagePackets, pipelineDepth ?? 0);
  return { pipelineDepth, closedForm: closedForm ?? null };
}
