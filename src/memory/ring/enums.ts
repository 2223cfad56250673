/**
 * The numbers of the verbs interface, equal to those of libibverbs, because they cross the rings and people compare
 * dumps. (rdma-core libibverbs/verbs.h; IBTA vol. 1 chapters 10 and 11.)
 */

import { checkWhole } from '../../core/arguments.js';
import { U32 } from '../../core/u64.js';

/** Work request opcodes (`ibv_wr_opcode`); `REG_MR` is the kernel's IB_WR_REG_MR, which has no number in user space. */
export const WR_RDMA_WRITE = 0;
/** RDMA WRITE that takes a receive of the peer and delivers 32 bits to it. */
export const WR_RDMA_WRITE_WITH_IMM = 1;
export const WR_SEND = 2;
export const WR_SEND_WITH_IMM = 3;
export const WR_RDMA_READ = 4;
export const WR_ATOMIC_CMP_AND_SWP = 5;
export const WR_ATOMIC_FETCH_AND_ADD = 6;
export const WR_LOCAL_INV = 7;
export const WR_BIND_MW = 8;
export const WR_SEND_WITH_INV = 9;
/** Earlier WRITEs to a range of the peer take effect before it is done. */
export const WR_FLUSH = 14;
/** Eight bytes of which no reader sees a part. */
export const WR_ATOMIC_WRITE = 15;
export const WR_REG_MR = 32;

export const WR_OPCODES = {
  RDMA_WRITE: WR_RDMA_WRITE,
  RDMA_WRITE_WITH_IMM: WR_RDMA_WRITE_WITH_IMM,
  SEND: WR_SEND,
  SEND_WITH_IMM: WR_SEND_WITH_IMM,
  RDMA_READ: WR_RDMA_READ,
  ATOMIC_CMP_AND_SWP: WR_ATOMIC_CMP_AND_SWP,
  ATOMIC_FETCH_AND_ADD: WR_ATOMIC_FETCH_AND_ADD,
  LOCAL_INV: WR_LOCAL_INV,
  BIND_MW: WR_BIND_MW,
  SEND_WITH_INV: WR_SEND_WITH_INV,
  FLUSH: WR_FLUSH,
  ATOMIC_WRITE: WR_ATOMIC_WRITE,
  REG_MR: WR_REG_MR,
} as const;

export const SEND_FENCE = 1;
export const SEND_SIGNALED = 2;
export const SEND_SOLICITED = 4;
export const SEND_INLINE = 8;

export const WC_SEND = 0;
export const WC_RDMA_WRITE = 1;
export const WC_RDMA_READ = 2;
export const WC_COMP_SWAP = 3;
export const WC_FETCH_ADD = 4;
export const WC_BIND_MW = 5;
export const WC_LOCAL_INV = 6;
export const WC_FLUSH = 8;
export const WC_ATOMIC_WRITE = 9;
export const WC_REG_MR = 16;
export const WC_RECV = 128;
export const WC_RECV_RDMA_WITH_IMM = 129;

const WC_OPCODE_NAMES = new Map([
  [WC_SEND, 'SEND'],
  [WC_RDMA_WRITE, 'RDMA_WRITE'],
  [WC_RDMA_READ, 'RDMA_READ'],
  [WC_COMP_SWAP, 'COMP_SWAP'],
  [WC_FETCH_ADD, 'FETCH_ADD'],
  [WC_BIND_MW, 'BIND_MW'],
  [WC_LOCAL_INV, 'LOCAL_INV'],
  [WC_FLUSH, 'FLUSH'],
  [WC_ATOMIC_WRITE, 'ATOMIC_WRITE'],
  [WC_REG_MR, 'REG_MR'],
  [WC_RECV, 'RECV'],
  [WC_RECV_RDMA_WITH_IMM, 'RECV_RDMA_WITH_IMM'],
] as const);

/** Operation of a work completion (`ibv_wc_opcode`). */
export type WcOpcodeName = (typeof WC_OPCODE_NAMES extends Map<unknown, infer N> ? N : never) | `opcode ${number}`;

export function wcOpcodeOf(wrOpcode: number): number {
  switch (wrOpcode) {
    case WR_RDMA_WRITE:
    case WR_RDMA_WRITE_WITH_IMM:
      return WC_RDMA_WRITE;
    case WR_RDMA_READ:
      return WC_RDMA_READ;
    case WR_ATOMIC_CMP_AND_SWP:
      return WC_COMP_SWAP;
    case WR_ATOMIC_FETCH_AND_ADD:
      return WC_FETCH_ADD;
    case WR_LOCAL_INV:
      return WC_LOCAL_INV;
    case WR_BIND_MW:
      return WC_BIND_MW;
    case WR_FLUSH:
      return WC_FLUSH;
    case WR_ATOMIC_WRITE:
      return WC_ATOMIC_WRITE;
    case WR_REG_MR:
      return WC_REG_MR;
    default:
      return WC_SEND;
  }
}

/** `RDMA_READ` for {@link WC_RDMA_READ}; `opcode 10` for a number without a name. */
export function wcOpcodeName(opcode: number): WcOpcodeName {
  return (WC_OPCODE_NAMES as ReadonlyMap<number, WcOpcodeName>).get(opcode) ?? `opcode ${opcode}`;
}

/**
 * Work completion flags (`ibv_wc_flags`); SOLICITED never leaves the ring: it only decides whether an armed CQ fires.
 */
export const WC_FLAG_GRH = 1;
export const WC_FLAG_WITH_IMM = 2;
export const WC_FLAG_WITH_INV = 8;
export const WC_FLAG_SOLICITED = 128;

/** Completion status (`ibv_wc_status`): name as in the spec, text as `ibv_wc_status_str` words it. */
const STATUS = [
  ['SUCCESS', 'success'],
  ['LOC_LEN_ERR', 'local length error'],
  ['LOC_QP_OP_ERR', 'local QP operation error'],
  ['LOC_EEC_OP_ERR', 'local EE context operation error'],
  ['LOC_PROT_ERR', 'local protection error'],
  ['WR_FLUSH_ERR', 'Work Request Flushed Error'],
  ['MW_BIND_ERR', 'memory bind operation error'],
  ['BAD_RESP_ERR', 'bad response error'],
  ['LOC_ACCESS_ERR', 'local access error'],
  ['REM_INV_REQ_ERR', 'remote invalid request error'],
  ['REM_ACCESS_ERR', 'remote access error'],
  ['REM_OP_ERR', 'remote operation error'],
  ['RETRY_EXC_ERR', 'transport retry counter exceeded'],
  ['RNR_RETRY_EXC_ERR', 'RNR retry counter exceeded'],
  ['LOC_RDD_VIOL_ERR', 'local RDD violation error'],
  ['REM_INV_RD_REQ_ERR', 'remote invalid RD request'],
  ['REM_ABORT_ERR', 'aborted error'],
  ['INV_EECN_ERR', 'invalid EE context number'],
  ['INV_EEC_STATE_ERR', 'invalid EE context state'],
  ['FATAL_ERR', 'fatal error'],
  ['RESP_TIMEOUT_ERR', 'response timeout error'],
  ['GENERAL_ERR', 'general error'],
  ['TM_ERR', 'TM error'],
  ['TM_RNDV_INCOMPLETE', 'TM software rendezvous'],
] as const;

/** Status of a work completion (`ibv_wc_status`), as the specification names it. */
export type WcStatusName = (typeof STATUS)[number][0] | `STATUS_${number}`;

export const STATUS_SUCCESS = 0;
/** A message was longer than the receive, or a length is impossible. */
export const STATUS_LOC_LEN_ERR = 1;
/** The work request is malformed, or not for this type of queue pair. */
export const STATUS_LOC_QP_OP_ERR = 2;
/** A scatter/gather element names memory that its key does not allow. */
export const STATUS_LOC_PROT_ERR = 4;
/** The queue pair was in ERR, or went there, before the work request was done. */
export const STATUS_WR_FLUSH_ERR = 5;
export const STATUS_MW_BIND_ERR = 6;
export const STATUS_BAD_RESP_ERR = 7;
export const STATUS_REM_INV_REQ_ERR = 9;
/** The peer sent NAK remote access error: key, range or rights. */
export const STATUS_REM_ACCESS_ERR = 10;
export const STATUS_REM_OP_ERR = 11;
export const STATUS_RETRY_EXC_ERR = 12;
/** The peer was not ready to receive after all retries. */
export const STATUS_RNR_RETRY_EXC_ERR = 13;

/** The name of a completion status as the specification has it: `RETRY_EXC_ERR` for 12. */
export function statusName(status: number): WcStatusName {
  return STATUS[status]?.[0] ?? `STATUS_${checkWhole('status', status, 0, U32 - 1)}`;
}

/** A completion status in the words of `ibv_wc_status_str`: `transport retry counter exceeded` for 12. */
export function statusText(status: number): string {
  return STATUS[status]?.[1] ?? `unknown status ${checkWhole('status', status, 0, U32 - 1)}`;
}

/** Local read is implied. */
export const ACCESS_LOCAL_WRITE = 1;
/** The peer may write; needs LOCAL_WRITE. */
export const ACCESS_REMOTE_WRITE = 2;
export const ACCESS_REMOTE_READ = 4;
/** The peer may do atomics; needs LOCAL_WRITE. */
export const ACCESS_REMOTE_ATOMIC = 8;
export const ACCESS_MW_BIND = 16;
/** Addresses count from 0 instead of a virtual address. */
export const ACCESS_ZERO_BASED = 32;
/** The peer may FLUSH: make data that it has written visible to all that read the memory. */
export const ACCESS_FLUSH_GLOBAL = 256;
/** The peer may FLUSH to persistent memory. */
export const ACCESS_FLUSH_PERSISTENT = 512;
export const ACCESS_ALL =
  ACCESS_LOCAL_WRITE |
  ACCESS_REMOTE_WRITE |
  ACCESS_REMOTE_READ |
  ACCESS_REMOTE_ATOMIC |
  ACCESS_MW_BIND |
  ACCESS_ZERO_BASED |
  ACCESS_FLUSH_GLOBAL |
  ACCESS_FLUSH_PERSISTENT;

export const QPS_RESET = 0;
export const QPS_INIT = 1;
export const QPS_RTR = 2;
export const QPS_RTS = 3;
export const QPS_SQD = 4;
export const QPS_SQE = 5;
export const QPS_ERR = 6;
export const QP_STATE_NAMES = ['RESET', 'INIT', 'RTR', 'RTS', 'SQD', 'SQE', 'ERR'] as const;
/** State of a queue pair (IBTA vol. 1 §10.3.1). */
export type QpStateName = (typeof QP_STATE_NAMES)[number];

/** QP types (`ibv_qp_type`); GSI is the management QP1, which libibverbs does not number. */
export const QPT_GSI = 1;
export const QPT_RC = 2;
export const QPT_UC = 3;
export const QPT_UD = 4;

export const QP_TYPES = { RC: QPT_RC, UC: QPT_UC, UD: QPT_UD, GSI: QPT_GSI } as const;
/**
 * Transport of a queue pair: reliable connection, unreliable connection, unreliable datagram, or the datagrams of QP1.
 */
export type QpTypeName = keyof typeof QP_TYPES;

/** Async events (`ibv_event_type` names), plus the ring's own notices to the application side. */
export const EVENT_COMMAND_DONE = 1;
/** An armed completion queue has a completion of the kind that it was armed for. ID: the CQ. */
export const EVENT_COMPLETION = 2;
/** The first packet came before the move to RTS. ID: the QPN. */
export const EVENT_COMM_EST = 3;
/** A send queue has drained in SQD, and its owner requested this. ID: the QPN. */
export const EVENT_SQ_DRAINED = 4;
/** A queue pair went to ERR by its own error. ID: the QPN. */
export const EVENT_QP_FATAL = 5;
/** A queue pair in ERR takes nothing more from its SRQ. ID: the QPN. */
export const EVENT_QP_LAST_WQE_REACHED = 6;
/** A shared receive queue fell below its limit. ID: the SRQ. */
export const EVENT_SRQ_LIMIT_REACHED = 7;
/** A completion queue overran. ID: the CQ. */
export const EVENT_CQ_ERR = 8;
/** A packet came from another UDP source port than the peer's. ID: the QPN. */
export const EVENT_QP_SOURCE_PORT = 9;
/** A response named a PSN that was never sent. ID: the QPN. */
export const EVENT_QP_UNSENT_RESPONSE = 10;
/** Two different packets came with one PSN. ID: the QPN. */
export const EVENT_QP_REORDER_CONFLICT = 11;
/** Congestion notifications came that no packet of the queue pair can have caused. ID: the QPN. */
export const EVENT_CNP_SUSPICIOUS = 12;
/** A queue pair that settles has sent every answer that it owed. ID: the QPN. */
export const EVENT_QP_SETTLED = 13;

/** A UDP source port that is yet to be learned. Ports are smaller. */
export const SOURCE_PORT_LEARN = 0x10000;
export const SOURCE_PORT_ANY = 0x10001;
/** The UDP source port that follows from both QPNs, the entropy of RoCEv2. */
export const SOURCE_PORT_FLOW = 0x10002;
