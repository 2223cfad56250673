/** Written by `CmProtocol` and its parts only. */

import { RoceError } from '../core/errors.js';
import type { IpAddress } from '../packet/address.js';
import type { MessageFields } from './messages.js';
import { rejectReasonText } from './reject-reason.js';

/** The states of IBTA vol. 1 §12.9.5; those in which an MRA has been seen are merged with the ones before it. */
export type CmState =
  | 'REQ_SENT'
  | 'REP_RCVD'
  | 'REQ_RCVD'
  | 'REP_SENT'
  | 'ESTABLISHED'
  | 'DREQ_SENT'
  | 'TIMEWAIT'
  | 'CLOSED';

export type CmEvent =
  | { readonly type: 'CONNECT_RESPONSE'; readonly fields: MessageFields<'REP'> }
  | { readonly type: 'ESTABLISHED' }
  | { readonly type: 'REJECTED'; readonly reason: number; readonly privateData: Uint8Array }
  | { readonly type: 'UNREACHABLE' }
  /** Passive side: the peer was silent, and others needed the room. Not one of `rdma_cm_event_type`. */
  | { readonly type: 'EVICTED' }
  | { readonly type: 'DISCONNECTED' };

export type CmEventHandler = (event: CmEvent) => void;

export class CmEndpoint {
  readonly localCommId: number;
  readonly remote: IpAddress;
  readonly isActive: boolean;
  onEvent: CmEventHandler;
  state: CmState;
  transactionId = 0n;
  remoteCommId = 0;
  remoteCaGuid = 0n;
  remoteQpn = 0;
  localQpn = 0;
  unanswered: Uint8Array = new Uint8Array(0);
  resendNs = 0;
  retries = 0;
  maxRetries = 0;
  giveUpNs = Number.POSITIVE_INFINITY;
  extendedAt = -1;
  /**
   * The peer is validated: it has echoed a number that only our answer contained, on this connection or an earlier one.
   * Peers of outgoing connections need no validation.
   */
  isValidated = false;
  /** Unanswered datagrams of the peer; replies beyond them count as unsolicited. */
  unansweredRequests = 0;
  timewaitNs = 0;
  /** When the REP was first sent. */
  repliedNs = 0;
  deadlineNs = Number.POSITIVE_INFINITY;

  constructor(localCommId: number, remote: IpAddress, state: 'REQ_SENT' | 'REQ_RCVD', onEvent: CmEventHandler) {
    this.localCommId = localCommId;
    this.remote = remote;
    this.isActive = state === 'REQ_SENT';
    this.isValidated = this.isActive;
    this.state = state;
    this.onEvent = onEvent;
  }

  get isHalfOpen(): boolean {
    return this.state === 'REQ_RCVD' || this.state === 'REP_SENT';
  }

  expectState(expected: CmState): void {
    if (this.state === expected) return;
    throw new RoceError(
      'ERR_ROCE_INVALID_STATE',
      `the connection to ${this.remote} is in ${this.state}, not ${expected}`,
      this.state === 'CLOSED' ? 'the peer has gone' : undefined,
    );
  }
}

export function describeRefusal(event: CmEvent): string {
  if (event.type === 'REJECTED') return `rejected: ${rejectReasonText(event.reason)} (${event.reason})`;
  if (event.type === 'EVICTED') return 'it was silent, and others needed the room';
  return event.type === 'UNREACHABLE' ? 'no answer' : 'the connection ended while it was being made';
}
