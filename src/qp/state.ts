/**
 * The state of a queue pair and how it changes (IBTA vol. 1 §10.3.1, §11.2.5.2). A transition that is not in the
 * transport's table, lacks a required attribute, or carries one it may not, is the caller's mistake.
 */

import { RoceError } from '../core/errors.js';
import {
  QP_ATTR_ACCESS_FLAGS,
  QP_ATTR_ALT_PATH,
  QP_ATTR_AV,
  QP_ATTR_CUR_STATE,
  QP_ATTR_DEST_QPN,
  QP_ATTR_EN_SQD_ASYNC_NOTIFY,
  QP_ATTR_INFLIGHT,
  QP_ATTR_MAX_DEST_RD_ATOMIC,
  QP_ATTR_MAX_QP_RD_ATOMIC,
  QP_ATTR_MIN_RNR_TIMER,
  QP_ATTR_PATH_MIG_STATE,
  QP_ATTR_PATH_MTU,
  QP_ATTR_PKEY_INDEX,
  QP_ATTR_PORT,
  QP_ATTR_QKEY,
  QP_ATTR_RATE_CONTROL,
  QP_ATTR_RECOVERY,
  QP_ATTR_REMOTE_SOURCE_PORT,
  QP_ATTR_RETRY_CNT,
  QP_ATTR_RNR_RETRY,
  QP_ATTR_RQ_PSN,
  QP_ATTR_SQ_PSN,
  QP_ATTR_STATE,
  QP_ATTR_TIMEOUT,
} from '../memory/ring/commands.js';
import { QP_STATE_NAMES, QPS_ERR, QPS_RESET, QPS_RTS } from '../memory/ring/enums.js';

export interface Transition {
  readonly required: number;
  readonly optional: number;
}

/**
 * The transitions of one transport by {@link transitionKey}; those to RESET and ERR are in none: they are allowed from
 * everywhere.
 */
export type TransitionTable = ReadonlyMap<number, Transition>;

export const transitionKey = (from: number, to: number) => from * 8 + to;

const ATTRIBUTE_NAMES: ReadonlyArray<readonly [bit: number, name: string]> = [
  [QP_ATTR_CUR_STATE, 'CUR_STATE'],
  [QP_ATTR_EN_SQD_ASYNC_NOTIFY, 'EN_SQD_ASYNC_NOTIFY'],
  [QP_ATTR_ACCESS_FLAGS, 'ACCESS_FLAGS'],
  [QP_ATTR_PKEY_INDEX, 'PKEY_INDEX'],
  [QP_ATTR_PORT, 'PORT'],
  [QP_ATTR_QKEY, 'QKEY'],
  [QP_ATTR_AV, 'AV'],
  [QP_ATTR_PATH_MTU, 'PATH_MTU'],
  [QP_ATTR_TIMEOUT, 'TIMEOUT'],
  [QP_ATTR_RETRY_CNT, 'RETRY_CNT'],
  [QP_ATTR_RNR_RETRY, 'RNR_RETRY'],
  [QP_ATTR_RQ_PSN, 'RQ_PSN'],
  [QP_ATTR_MAX_QP_RD_ATOMIC, 'MAX_QP_RD_ATOMIC'],
  [QP_ATTR_ALT_PATH, 'ALT_PATH'],
  [QP_ATTR_MIN_RNR_TIMER, 'MIN_RNR_TIMER'],
  [QP_ATTR_SQ_PSN, 'SQ_PSN'],
  [QP_ATTR_MAX_DEST_RD_ATOMIC, 'MAX_DEST_RD_ATOMIC'],
  [QP_ATTR_PATH_MIG_STATE, 'PATH_MIG_STATE'],
  [QP_ATTR_DEST_QPN, 'DEST_QPN'],
  [QP_ATTR_RECOVERY, 'RECOVERY'],
  [QP_ATTR_INFLIGHT, 'INFLIGHT'],
  [QP_ATTR_RATE_CONTROL, 'RATE_CONTROL'],
  [QP_ATTR_REMOTE_SOURCE_PORT, 'REMOTE_SOURCE_PORT'],
];

const FROM_ANYWHERE: Transition = { required: 0, optional: 0 };

function names(mask: number): string {
  return ATTRIBUTE_NAMES.filter(([bit]) => (mask & bit) !== 0)
    .map(([, name]) => name)
    .join(', ');
}

/**
 * Checks a modify while the send queue drains: changes allowed in RTS are allowed; others concern work on the wire and
 * have to wait (IBTA §10.3.1.5).
 */
export function checkWhileDraining(transitions: TransitionTable, mask: number): void {
  const running = transitions.get(transitionKey(QPS_RTS, QPS_RTS))?.optional ?? 0;
  const early = mask & ~QP_ATTR_STATE & ~running;
  if (early === 0) return;
  throw new RoceError(
    'ERR_ROCE_INVALID_STATE',
    `the send queue is still draining: it takes the attributes ${names(early)} when that is done`,
    'wait for SQ_DRAINED (enSqdAsyncNotify), or until query() says sqDraining: false',
  );
}

export function checkTransition(transitions: TransitionTable, from: number, to: number, mask: number): void {
  const what = `${QP_STATE_NAMES[from]} to ${QP_STATE_NAMES[to] ?? to}`;
  const transition = to === QPS_RESET || to === QPS_ERR ? FROM_ANYWHERE : transitions.get(transitionKey(from, to));
  if (transition === undefined) {
    throw new RoceError('ERR_ROCE_INVALID_STATE', `a QP cannot go from ${what}`, 'the order is RESET, INIT, RTR, RTS');
  }
  const given = mask & ~QP_ATTR_STATE;
  const missing = transition.required & ~given;
  if (missing !== 0) throw new RoceError('ERR_ROCE_INVALID_ARGUMENT', `${what} needs the attributes ${names(missing)}`);
  const extra = given & ~(transition.required | transition.optional);
  if (extra !== 0) throw new RoceError('ERR_ROCE_CONFLICT', `${what} does not take the attributes ${names(extra)}`);
}
