/**
 * The attributes that each transition of each transport takes (IBTA vol. 1 §11.2.5.2, table 91), our extensions
 * included.
 */

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
  QP_ATTR_TIMEOUT,
  QP_ATTR_TOTAL_TIMEOUT,
} from '../memory/ring/commands.js';
import { QPS_INIT, QPS_RESET, QPS_RTR, QPS_RTS, QPS_SQD, QPS_SQE } from '../memory/ring/enums.js';
import { type TransitionTable, transitionKey } from './state.js';

const INIT_ATTRIBUTES = QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS;
const UC_RUNNING_OPTIONAL =
  QP_ATTR_CUR_STATE |
  QP_ATTR_ACCESS_FLAGS |
  QP_ATTR_ALT_PATH |
  QP_ATTR_PATH_MIG_STATE |
  QP_ATTR_RATE_CONTROL |
  QP_ATTR_REMOTE_SOURCE_PORT;
const RUNNING_OPTIONAL = UC_RUNNING_OPTIONAL | QP_ATTR_MIN_RNR_TIMER | QP_ATTR_TOTAL_TIMEOUT;

export const RC_TRANSITIONS: TransitionTable = new Map([
  // The program may set the scheme before a connection manager moves the queue pair to RTR.
  [transitionKey(QPS_RESET, QPS_INIT), { required: INIT_ATTRIBUTES, optional: QP_ATTR_RECOVERY }],
  [transitionKey(QPS_INIT, QPS_INIT), { required: 0, optional: INIT_ATTRIBUTES | QP_ATTR_RECOVERY }],
  [
    transitionKey(QPS_INIT, QPS_RTR),
    {
      required:
        QP_ATTR_AV |
        QP_ATTR_PATH_MTU |
        QP_ATTR_DEST_QPN |
        QP_ATTR_RQ_PSN |
        QP_ATTR_MAX_DEST_RD_ATOMIC |
        QP_ATTR_MIN_RNR_TIMER,
      optional:
        QP_ATTR_ALT_PATH |
        QP_ATTR_ACCESS_FLAGS |
        QP_ATTR_PKEY_INDEX |
        QP_ATTR_RECOVERY |
        QP_ATTR_INFLIGHT |
        QP_ATTR_RATE_CONTROL |
        QP_ATTR_REMOTE_SOURCE_PORT,
    },
  ],
  [
    transitionKey(QPS_RTR, QPS_RTS),
    {
      required: QP_ATTR_SQ_PSN | QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY | QP_ATTR_MAX_QP_RD_ATOMIC,
      optional: RUNNING_OPTIONAL,
    },
  ],
  [transitionKey(QPS_RTS, QPS_RTS), { required: 0, optional: RUNNING_OPTIONAL }],
  [transitionKey(QPS_RTS, QPS_SQD), { required: 0, optional: QP_ATTR_EN_SQD_ASYNC_NOTIFY }],
  [transitionKey(QPS_SQD, QPS_RTS), { required: 0, optional: RUNNING_OPTIONAL }],
  [
    transitionKey(QPS_SQD, QPS_SQD),
    {
      required: 0,
      optional:
        RUNNING_OPTIONAL |
        QP_ATTR_AV |
        QP_ATTR_PORT |
        QP_ATTR_PKEY_INDEX |
        QP_ATTR_TIMEOUT |
        QP_ATTR_RETRY_CNT |
        QP_ATTR_RNR_RETRY |
        QP_ATTR_MAX_QP_RD_ATOMIC |
        QP_ATTR_MAX_DEST_RD_ATOMIC,
    },
  ],
]);

/** Unreliable connection: nothing is acknowledged, so there are no timers, retries, READs or recovery to set. */
export const UC_TRANSITIONS: TransitionTable = new Map([
  [transitionKey(QPS_RESET, QPS_INIT), { required: INIT_ATTRIBUTES, optional: 0 }],
  [transitionKey(QPS_INIT, QPS_INIT), { required: 0, optional: INIT_ATTRIBUTES }],
  [
    transitionKey(QPS_INIT, QPS_RTR),
    {
      required: QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN,
      optional:
        QP_ATTR_ALT_PATH |
        QP_ATTR_ACCESS_FLAGS |
        QP_ATTR_PKEY_INDEX |
        QP_ATTR_RATE_CONTROL |
        QP_ATTR_REMOTE_SOURCE_PORT,
    },
  ],
  [transitionKey(QPS_RTR, QPS_RTS), { required: QP_ATTR_SQ_PSN, optional: UC_RUNNING_OPTIONAL }],
  [transitionKey(QPS_RTS, QPS_RTS), { required: 0, optional: UC_RUNNING_OPTIONAL }],
  [transitionKey(QPS_RTS, QPS_SQD), { required: 0, optional: QP_ATTR_EN_SQD_ASYNC_NOTIFY }],
  [transitionKey(QPS_SQD, QPS_RTS), { required: 0, optional: UC_RUNNING_OPTIONAL }],
  [
    transitionKey(QPS_SQD, QPS_SQD),
    { required: 0, optional: UC_RUNNING_OPTIONAL | QP_ATTR_AV | QP_ATTR_PORT | QP_ATTR_PKEY_INDEX },
  ],
  [transitionKey(QPS_SQE, QPS_RTS), { required: 0, optional: QP_ATTR_CUR_STATE | QP_ATTR_ACCESS_FLAGS }],
]);

export const UD_TRANSITIONS: TransitionTable = new Map([
  [transitionKey(QPS_RESET, QPS_INIT), { required: QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_QKEY, optional: 0 }],
  [transitionKey(QPS_INIT, QPS_INIT), { required: 0, optional: QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_QKEY }],
  [transitionKey(QPS_INIT, QPS_RTR), { required: 0, optional: QP_ATTR_PKEY_INDEX | QP_ATTR_QKEY }],
  [transitionKey(QPS_RTR, QPS_RTS), { required: QP_ATTR_SQ_PSN, optional: QP_ATTR_CUR_STATE | QP_ATTR_QKEY }],
  [transitionKey(QPS_RTS, QPS_RTS), { required: 0, optional: QP_ATTR_CUR_STATE | QP_ATTR_QKEY }],
  [transitionKey(QPS_RTS, QPS_SQD), { required: 0, optional: QP_ATTR_EN_SQD_ASYNC_NOTIFY }],
  [transitionKey(QPS_SQD, QPS_RTS), { required: 0, optional: QP_ATTR_CUR_STATE | QP_ATTR_QKEY }],
  [transitionKey(QPS_SQD, QPS_SQD), { required: 0, optional: QP_ATTR_PKEY_INDEX | QP_ATTR_QKEY }],
  [transitionKey(QPS_SQE, QPS_RTS), { required: 0, optional: QP_ATTR_CUR_STATE | QP_ATTR_QKEY }],
]);
