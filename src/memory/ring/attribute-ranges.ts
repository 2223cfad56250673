import { checkWhole } from '../../core/arguments.js';
import { RoceError } from '../../core/errors.js';
import { PATH_MTUS } from '../../packet/path-mtu.js';
import {
  QP_ATTR_ACCESS_FLAGS,
  QP_ATTR_AV,
  QP_ATTR_DEST_QPN,
  QP_ATTR_EN_SQD_ASYNC_NOTIFY,
  QP_ATTR_INFLIGHT,
  QP_ATTR_MAX_DEST_RD_ATOMIC,
  QP_ATTR_MAX_QP_RD_ATOMIC,
  QP_ATTR_MIN_RNR_TIMER,
  QP_ATTR_PATH_MTU,
  QP_ATTR_PKEY_INDEX,
  QP_ATTR_PORT,
  QP_ATTR_QKEY,
  QP_ATTR_REMOTE_SOURCE_PORT,
  QP_ATTR_RETRY_CNT,
  QP_ATTR_RNR_RETRY,
  QP_ATTR_RQ_PSN,
  QP_ATTR_SQ_PSN,
  QP_ATTR_TIMEOUT,
  QP_ATTR_TOTAL_TIMEOUT,
  type QpAttributes,
} from './commands.js';
import { ACCESS_ALL, SOURCE_PORT_FLOW } from './enums.js';

/** READs and atomics that a queue pair has outstanding, or answers, at a time: the most. */
export const RD_ATOMIC_MAX = 128;

const U24_MAX = 0xffffff;
const U32_MAX = 0xffffffff;

/** Mask bit, field, lowest, highest; its public name if different. */
const RANGES: ReadonlyArray<
  readonly [bit: number, field: keyof QpAttributes, min: number, max: number, name?: string]
> = [
  [QP_ATTR_PKEY_INDEX, 'pkeyIndex', 0, 0],
  [QP_ATTR_PORT, 'port', 1, 1],
  [QP_ATTR_QKEY, 'qkey', 0, U32_MAX],
  [QP_ATTR_DEST_QPN, 'destQpn', 1, U24_MAX],
  [QP_ATTR_PATH_MTU, 'pathMtu', 1, PATH_MTUS.length],
  [QP_ATTR_TIMEOUT, 'timeout', 0, 31],
  [QP_ATTR_TOTAL_TIMEOUT, 'totalTimeout', 0, 31],
  [QP_ATTR_RETRY_CNT, 'retryCnt', 0, 7],
  [QP_ATTR_RNR_RETRY, 'rnrRetry', 0, 7],
  [QP_ATTR_RQ_PSN, 'rqPsn', 0, U24_MAX],
  [QP_ATTR_SQ_PSN, 'sqPsn', 0, U24_MAX],
  [QP_ATTR_MAX_QP_RD_ATOMIC, 'maxRdAtomic', 0, RD_ATOMIC_MAX],
  [QP_ATTR_MAX_DEST_RD_ATOMIC, 'maxDestRdAtomic', 0, RD_ATOMIC_MAX],
  [QP_ATTR_MIN_RNR_TIMER, 'minRnrTimer', 0, 31],
  [QP_ATTR_AV, 'remoteUdpPort', 0, 0xffff, 'udpPort'],
  [QP_ATTR_AV, 'dscp', 0, 63],
  [QP_ATTR_AV, 'ecn', 0, 3],
  [QP_ATTR_EN_SQD_ASYNC_NOTIFY, 'enSqdAsyncNotify', 0, 1],
  [QP_ATTR_INFLIGHT, 'inflightPackets', 2, U32_MAX],
  [QP_ATTR_REMOTE_SOURCE_PORT, 'remoteSourcePort', 0, SOURCE_PORT_FLOW],
];

/** Throws ERR_ROCE_OUT_OF_RANGE unless the value is a combination of access flags. Returns it. */
export function checkAccess(name: string, value: unknown): number {
  const access = checkWhole(name, value, 0, ACCESS_ALL);
  if ((access & ~ACCESS_ALL) === 0) return access;
  throw new RoceError(
    'ERR_ROCE_OUT_OF_RANGE',
    `${name} has unknown flags: ${access & ~ACCESS_ALL}`,
    'it must be a combination of flags of Access',
  );
}

/**
 * Throws ERR_ROCE_OUT_OF_RANGE for an attribute that the mask names and whose value is not a whole number in its range.
 */
export function checkAttributes(values: Readonly<Partial<QpAttributes>>, mask: number): void {
  for (const [bit, field, min, max, name = field] of RANGES) {
    if ((mask & bit) !== 0) checkWhole(name, values[field], min, max);
  }
  if ((mask & QP_ATTR_ACCESS_FLAGS) !== 0) checkAccess('accessFlags', values.accessFlags);
}
