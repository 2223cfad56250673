import { rateControlOf } from '@rocev2/command';
import { ATOMIC_BYTES } from 'rocev2/internal/packet';
import type { TransferOp, TransferPlan } from './endpoint.js';
import type { ToolName } from './flags.js';
import type { TransferOptions } from './transfer-options.js';

/** 104 days. */
const ENDLESS_NS = Number.MAX_SAFE_INTEGER;

export function planOf(tool: ToolName, op: TransferOp, options: TransferOptions): TransferPlan {
  const isTimed = options.runInfinitely === true || options.duration !== undefined;
  return {
    tool,
    op,
    transport: options.transport,
    sizeBytes: op === 'atomic' ? ATOMIC_BYTES : options.size,
    iterations: isTimed ? 0 : options.iters,
    durationNs: options.runInfinitely === true ? ENDLESS_NS : (options.duration ?? 0),
    qps: options.qp,
    allSizes: options.all === true,
    bidirectional: options.bidirectional === true,
    rateControl: rateControlOf(options),
  };
}
