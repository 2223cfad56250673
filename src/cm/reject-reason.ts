/**
 * Why a connection is refused: the reason codes of a REJ (IBTA vol. 1 §12.6.7.2, table 111) and of a SIDR_REP
 * (§12.11.2).
 */

export const REJ_NO_RESOURCES = 3;
export const REJ_TIMEOUT = 4;
export const REJ_UNSUPPORTED = 5;
export const REJ_INVALID_COMM_ID = 6;
export const REJ_INVALID_SERVICE_ID = 8;
export const REJ_INVALID_TRANSPORT = 9;
export const REJ_STALE_CONNECTION = 10;
export const REJ_INVALID_GID = 12;
export const REJ_INVALID_PATH_MTU = 26;
export const REJ_CONSUMER_DEFINED = 28;

export const SIDR_VALID = 0;
export const SIDR_UNSUPPORTED = 1;
export const SIDR_REJECTED = 2;
export const SIDR_NO_QP = 3;

const TEXTS: ReadonlyMap<number, string> = new Map([
  [1, 'no queue pair available'],
  [2, 'no end-to-end context available'],
  [REJ_NO_RESOURCES, 'no resources available'],
  [REJ_TIMEOUT, 'the peer gave up waiting'],
  [REJ_UNSUPPORTED, 'unsupported request'],
  [REJ_INVALID_COMM_ID, 'invalid communication ID'],
  [7, 'invalid communication instance'],
  [REJ_INVALID_SERVICE_ID, 'no listener on that port'],
  [REJ_INVALID_TRANSPORT, 'invalid transport type'],
  [REJ_STALE_CONNECTION, 'stale connection'],
  [11, 'the reliable datagram channel does not exist'],
  [REJ_INVALID_GID, 'the path names an address of another host'],
  [REJ_INVALID_PATH_MTU, 'invalid path MTU'],
  [27, 'insufficient responder resources'],
  [REJ_CONSUMER_DEFINED, 'refused by the listening program'],
  [29, 'invalid RNR retry count'],
  [30, 'duplicate local communication ID'],
  [31, 'unsupported class version'],
  [32, 'invalid flow label'],
  [33, 'invalid alternate flow label'],
  [35, 'vendor option not supported'],
]);

const SIDR_TEXTS: ReadonlyMap<number, string> = new Map([
  [SIDR_UNSUPPORTED, 'no datagram service on that port'],
  [SIDR_REJECTED, 'refused by the serving program'],
  [SIDR_NO_QP, 'no queue pair available'],
  [4, 'redirected to another port'],
  [5, 'unsupported version'],
]);

export function sidrStatusText(status: number): string {
  return SIDR_TEXTS.get(status) ?? `status ${status}`;
}

export function rejectReasonText(reason: number): string {
  return TEXTS.get(reason) ?? `reason ${reason}`;
}
