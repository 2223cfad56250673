/** One end of a connection as connection management knows it. Written by `CmProtocol` and its parts only. */

import { RoceError } from '../core/errors.js';
import type { IpAddress } from '../packet/address.js';
import type { MessageFields } from './messages.js';
import { rejectReasonText } from './reject-reason.js';

/** The states of IBTA vol. 1 §12.9.5; those in which an MRA has been seen are not told apart from the ones before it. */
export type CmState =
  | 'REQ_SENT'
  | 'REP_RCVD'
  | 'REQ_RCVD'
  | 'REP_SENT'
  | 'ESTABLISHED'
  | 'DREQ_SENT'
  | 'TIMEWAIT'
  | 'CLOSED';

/** What happens to an endpoint, by the names of `rdma_cm_event_type`. */
export type CmEvent =
  /** Active side: bring the QP up, then `confirm`, or `reject`. */
  | { readonly type: 'CONNECT_RESPONSE'; readonly fields: MessageFields<'REP'> }
  /** Passive side: the peer is ready. */
  | { readonly type: 'ESTABLISHED' }
  | { readonly type: 'REJECTED'; readonly reason: number; readonly privateData: Uint8Array }
  /** Nobody answered in time. */
  | { readonly type: 'UNREACHABLE' }
  /** Passive side: the peer was silent, and others needed the room. Not one of `rdma_cm_event_type`. */
  | { readonly type: 'EVICTED' }
  | { readonly type: 'DISCONNECTED' };

/** Takes the events of one endpoint, during the calls of `CmProtocol`. */
export type CmEventHandler = (event: CmEvent) => void;

/** One end of a connection, from REQ to the end of TIMEWAIT. */
export class CmEndpoint {
  /** Communication ID of this end. */
  readonly localCommId: number;
  /** IP address of the peer; datagrams from elsewhere are ignored. */
  readonly remote: IpAddress;
  /** Sent the REQ. */
  readonly isActive: boolean;
  /** Set by whoever the endpoint belongs to. */
  onEvent: CmEventHandler;
  /** Where it is. */
  state: CmState;
  /** Of the REQ and everything that answers it. */
  transactionId = 0n;
  /** Communication ID of the other end; 0 while it is not known. */
  remoteCommId = 0;
  /** Tells the peer from an earlier instance at its address. */
  remoteCaGuid = 0n;
  /** Queue pair of the peer; 0 while it is not known. */
  remoteQpn = 0;
  /** Queue pair of this end; 0 while it is not known. */
  localQpn = 0;
  /** The datagram that waits for its answer. */
  unanswered: Uint8Array = new Uint8Array(0);
  /** How long it waits for the answer. */
  resendNs = 0;
  /** How often it was sent again. */
  retries = 0;
  /** How often it may be sent again. */
  maxRetries = 0;
  /** When it is given up, however often it was sent; Infinity: the retries decide. */
  giveUpNs = Number.POSITIVE_INFINITY;
  /** Value of `retries` when an MRA was heeded; one is for each sending. */
  extendedAt = -1;
  /**
   * The peer is known to receive at its address: it has repeated a number that only our answer told, on this connection or an earlier one.
   * Whom we ask ourselves needs no proof.
   */
  isValidated = false;
  /** Datagrams of the peer that have not been answered; those beyond are sent unasked. */
  unansweredRequests = 0;
  /** How long the endpoint stays in TIMEWAIT. */
  timewaitNs = 0;
  /** When something is due; Infinity: nothing is. */
  deadlineNs = Number.POSITIVE_INFINITY;

  constructor(localCommId: number, remote: IpAddress, state: 'REQ_SENT' | 'REQ_RCVD', onEvent: CmEventHandler) {
    this.localCommId = localCommId;
    this.remote = remote;
    this.isActive = state === 'REQ_SENT';
    this.isValidated = this.isActive;
    this.state = state;
    this.onEvent = onEvent;
  }

  /** The passive side, before the peer has said that it is ready: whoever sends REQs can make these. */
  get isHalfOpen(): boolean {
    return this.state === 'REQ_RCVD' || this.state === 'REP_SENT';
  }

  /** Throws ERR_ROCE_INVALID_STATE. */
  expectState(expected: CmState): void {
    if (this.state === expected) return;
    throw new RoceError(
      'ERR_ROCE_INVALID_STATE',
      `the connection to ${this.remote} is in ${this.state}, not ${expected}`,
      this.state === 'CLOSED' ? 'the peer has gone' : undefined,
    );
  }
}

/** For people: what became of a connection that was not made. */
export function describeRefusal(event: CmEvent): string {
  if (event.type === 'REJECTED') return `rejected: ${rejectReasonText(event.reason)} (${event.reason})`;
  if (event.type === 'EVICTED') return 'it was silent, and others needed the room';
  return event.type === 'UNREACHABLE' ? 'no answer' : 'the connection ended while it was being made';
}
