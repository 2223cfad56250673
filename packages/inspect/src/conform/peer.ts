import type { TimedInbox } from './inbox.js';
import type { Offer } from './offer.js';
import type { Order } from './order.js';
import type { Received } from './wire.js';

/** How a queue pair of the target is had. */
export type Via = 'cm' | 'perftest' | 'agent';

export interface ConnectionTerms {
  /** Path MTU in bytes. */
  readonly mtu: number;
  readonly answerMs: number;
  readonly startPsn?: number;
  readonly order?: Order;
  readonly initiatorDepth?: number;
  readonly responderResources?: number;
  readonly isClosed?: boolean;
  readonly rtu?: boolean;
  readonly lid?: number;
  readonly toNobody?: boolean;
}

export type ConnectOutcome =
  | { readonly kind: 'connected'; readonly connection: PeerConnection }
  | { readonly kind: 'refused'; readonly text: string; readonly reason?: number }
  | { readonly kind: 'silent'; readonly text: string };

export interface PeerConnection {
  /** Path MTU in bytes. */
  readonly mtu: number;
  readonly qpn: number;
  readonly startPsn: number;
  readonly peerStartPsn: number;
  readonly depth: number;
  readonly offer: Offer | undefined;
  readonly inbox: TimedInbox<Received>;
  readonly retransmission?: CmRetransmission;
  close(): Promise<void>;
}

export interface CmRetransmission {
  repeatRequest(): Promise<string | undefined>;
  /** Sends a REQ as a restarted peer does: the same queue pair, another communication ID. */
  requestAgain(): Promise<{ readonly name: string; readonly reason?: number } | undefined>;
  disconnect(tries?: number): Promise<boolean>;
}

export interface Connector {
  readonly via: Via;
  lacks(terms: ConnectionTerms): string | undefined;
  connect(terms: ConnectionTerms): Promise<ConnectOutcome>;
}
