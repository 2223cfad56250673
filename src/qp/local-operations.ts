/**
 * Work requests that send nothing: binding a memory window, registering a fast-register region, invalidating a key
 * (IBTA vol. 1 §11.4.1).
 */

import { EXACT_HIGH_END, U32 } from '../core/u64.js';
import {
  STATUS_LOC_QP_OP_ERR,
  STATUS_MW_BIND_ERR,
  STATUS_SUCCESS,
  WR_BIND_MW,
  WR_LOCAL_INV,
} from '../memory/ring/enums.js';
import type { SendWqe } from '../memory/ring/work-queue.js';
import type { QueuePairOptions } from './nic-queue-pair.js';

/** Returns the completion status (`ibv_wc_status`). */
export function executeLocal(options: QueuePairOptions, wqe: SendWqe): number {
  if (wqe.opcode === WR_LOCAL_INV) {
    const { host, pd, qpn } = options;
    return host.keys.invalidate(wqe.rkey, pd, qpn) ? STATUS_SUCCESS : STATUS_LOC_QP_OP_ERR;
  }
  if (wqe.opcode === WR_BIND_MW) return bindWindow(options, wqe) ? STATUS_SUCCESS : STATUS_MW_BIND_ERR;
  return fastRegister(options, wqe) ? STATUS_SUCCESS : STATUS_LOC_QP_OP_ERR;
}

function bindWindow({ host, pd, qpn }: QueuePairOptions, wqe: SendWqe): boolean {
  const { sges } = wqe;
  if (sges.count > 1) return false;
  return host.keys.bind({
    window: wqe.handle,
    regionKey: sges.count === 0 ? 0 : sges.lkeys[0],
    newKey: wqe.rkey,
    baseHigh: wqe.remoteHigh,
    baseLow: wqe.remoteLow,
    lengthBytes: sges.count === 0 ? 0 : sges.lengths[0],
    access: wqe.access,
    qpn,
    pd,
  });
}

/** The single SGE of REG_MR is the part of the memory to map: address = offset, length = length. */
function fastRegister({ host, pd }: QueuePairOptions, wqe: SendWqe): boolean {
  const { sges } = wqe;
  if (sges.count !== 1 || sges.high[0] >= EXACT_HIGH_END) return false;
  return host.keys.fastRegister(
    wqe.handle,
    pd,
    wqe.rkey,
    sges.high[0] * U32 + sges.low[0],
    sges.lengths[0],
    wqe.remoteHigh,
    wqe.remoteLow,
    wqe.access,
  );
}
