import { RoceError } from '../core/errors.js';
import { createRateControl, packRateControl, unpackRateControl } from '../dcqcn/rate-controls.js';
import { checkAttributes } from '../memory/ring/attribute-ranges.js';
import {
  type FieldValue,
  QP_ATTR_ACCESS_FLAGS,
  QP_ATTR_AV,
  QP_ATTR_DEST_QPN,
  QP_ATTR_EN_SQD_ASYNC_NOTIFY,
  QP_ATTR_INFLIGHT,
  QP_ATTR_MAX_DEST_RD_ATOMIC,
  QP_ATTR_MAX_QP_RD_ATOMIC,
  QP_ATTR_MIN_RNR_TIMER,
  QP_ATTR_PATH_MTU,
  QP_ATTR_QKEY,
  QP_ATTR_RATE_CONTROL,
  QP_ATTR_RECOVERY,
  QP_ATTR_REMOTE_SOURCE_PORT,
  QP_ATTR_RETRY_CNT,
  QP_ATTR_RNR_RETRY,
  QP_ATTR_RQ_PSN,
  QP_ATTR_SQ_PSN,
  QP_ATTR_TIMEOUT,
  QP_ATTR_TOTAL_TIMEOUT,
  type QpAttributes,
} from '../memory/ring/commands.js';
import { QPS_RESET, SOURCE_PORT_LEARN } from '../memory/ring/enums.js';
import { PATH_MTUS } from '../packet/path-mtu.js';
import {
  createReceiver,
  createSender,
  packRecovery,
  STANDARD_RECOVERY,
  unpackRecovery,
} from '../retransmit/recovery-schemes.js';

/** Attributes of a QP in RESET: that was just created, or went back there. */
export function initialAttributes(): QpAttributes {
  const recovery = packRecovery(STANDARD_RECOVERY);
  const uncontrolled = packRateControl({ name: 'none' });
  return {
    state: QPS_RESET,
    curState: QPS_RESET,
    enSqdAsyncNotify: 0,
    accessFlags: 0,
    pkeyIndex: 0,
    port: 1,
    qkey: 0,
    remoteGid: new Uint8Array(16),
    remoteUdpPort: 0,
    dscp: 0,
    ecn: 0,
    pathMtu: 0,
    timeout: 0,
    totalTimeout: 0,
    retryCnt: 0,
    rnrRetry: 0,
    rqPsn: 0,
    maxRdAtomic: 0,
    minRnrTimer: 0,
    sqPsn: 0,
    maxDestRdAtomic: 0,
    destQpn: 0,
    recovery: recovery.name,
    recoveryParameters: recovery.block,
    inflightPackets: 0,
    remoteSourcePort: SOURCE_PORT_LEARN,
    rateControl: uncontrolled.name,
    rateParameters: uncontrolled.block,
  };
}

/**
 * Throws what {@link checkAttributes} throws, and ERR_ROCE_OUT_OF_RANGE for a path MTU that the port cannot carry;
 * rejects unknown schemes.
 */
export function checkRanges(values: QpAttributes, mask: number, pathMtuMax: number): void {
  checkAttributes(values, mask);
  if ((mask & QP_ATTR_RECOVERY) !== 0) {
    const recovery = unpackRecovery(values.recovery, values.recoveryParameters);
    createSender(recovery);
    createReceiver(recovery);
  }
  if ((mask & QP_ATTR_RATE_CONTROL) !== 0) {
    createRateControl(unpackRateControl(values.rateControl, values.rateParameters));
  }
  if ((mask & QP_ATTR_PATH_MTU) !== 0 && PATH_MTUS[values.pathMtu - 1] > pathMtuMax) {
    throw new RoceError(
      'ERR_ROCE_OUT_OF_RANGE',
      `path MTU ${PATH_MTUS[values.pathMtu - 1]} does not fit the port`,
      `its largest is ${pathMtuMax}`,
    );
  }
}

export function asksForDrained({ enSqdAsyncNotify }: QpAttributes, mask: number): boolean {
  return (mask & QP_ATTR_EN_SQD_ASYNC_NOTIFY) !== 0 && enSqdAsyncNotify === 1;
}

const MASKED: ReadonlyArray<readonly [bit: number, names: ReadonlyArray<keyof QpAttributes>]> = [
  [QP_ATTR_ACCESS_FLAGS, ['accessFlags']],
  [QP_ATTR_QKEY, ['qkey']],
  [QP_ATTR_AV, ['remoteGid', 'remoteUdpPort', 'dscp', 'ecn']],
  [QP_ATTR_PATH_MTU, ['pathMtu']],
  [QP_ATTR_TIMEOUT, ['timeout']],
  [QP_ATTR_TOTAL_TIMEOUT, ['totalTimeout']],
  [QP_ATTR_RETRY_CNT, ['retryCnt']],
  [QP_ATTR_RNR_RETRY, ['rnrRetry']],
  [QP_ATTR_RQ_PSN, ['rqPsn']],
  [QP_ATTR_SQ_PSN, ['sqPsn']],
  [QP_ATTR_MAX_QP_RD_ATOMIC, ['maxRdAtomic']],
  [QP_ATTR_MAX_DEST_RD_ATOMIC, ['maxDestRdAtomic']],
  [QP_ATTR_MIN_RNR_TIMER, ['minRnrTimer']],
  [QP_ATTR_DEST_QPN, ['destQpn']],
  [QP_ATTR_RECOVERY, ['recovery', 'recoveryParameters']],
  [QP_ATTR_INFLIGHT, ['inflightPackets']],
  [QP_ATTR_REMOTE_SOURCE_PORT, ['remoteSourcePort']],
  [QP_ATTR_RATE_CONTROL, ['rateControl', 'rateParameters']],
];

export function applyAttributes(to: QpAttributes, from: QpAttributes, mask: number): void {
  for (const [bit, names] of MASKED) {
    if ((mask & bit) === 0) continue;
    for (const name of names) (to as Record<string, FieldValue>)[name] = from[name];
  }
}
