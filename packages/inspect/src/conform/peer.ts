/** A queue pair of the target as a test case sees it, and the ways to get one: RDMA CM, the exchange of perftest, or an agent. */

import type { Inbox } from './inbox.js';
import type { Offer } from './offer.js';
import type { Order } from './order.js';
import type { Received } from './wire.js';

/** How a queue pair of the target is had. */
export type Via = 'cm' | 'perftest' | 'agent';

/** What a connection is to be like. */
export interface ConnectionTerms {
  /** Path MTU in bytes. */
  readonly mtu: number;
  /** How long an answer may take. */
  readonly answerMs: number;
  /** PSN of the first request of the tester; default: whatever the target, or chance, chooses. */
  readonly startPsn?: number;
  /** What the target posts when it is connected. */
  readonly order?: Order;
  /** READs and atomics of the tester that the target is to answer at a time; default 4. */
  readonly initiatorDepth?: number;
  /** READs and atomics that the tester answers at a time; default 4. */
  readonly responderResources?: number;
  /** The target's queue pair allows no READ, WRITE or atomic. */
  readonly isClosed?: boolean;
  /** RDMA CM: false sends no RTU. */
  readonly rtu?: boolean;
  /** RDMA CM: LIDs of the primary path; default 0xffff, as over Ethernet. */
  readonly lid?: number;
  /** RDMA CM: true asks for a port on which nobody listens. */
  readonly toNobody?: boolean;
}

/** What came of an attempt to get a queue pair. */
export type ConnectOutcome =
  | { readonly kind: 'connected'; readonly connection: PeerConnection }
  /** `text`: who refused, and how; `reason`: of a REJ. */
  | { readonly kind: 'refused'; readonly text: string; readonly reason?: number }
  | { readonly kind: 'silent'; readonly text: string };

/** A queue pair of the target that is connected to the tester. */
export interface PeerConnection {
  /** Path MTU in bytes. */
  readonly mtu: number;
  /** The target's queue pair. */
  readonly qpn: number;
  /** PSN of the tester's first request. */
  readonly startPsn: number;
  /** PSN of the target's first request. */
  readonly peerStartPsn: number;
  /** READs and atomics that the target answers at a time. */
  readonly depth: number;
  /** What the target has for its tester; undefined where it names nothing. */
  readonly offer: Offer | undefined;
  /** Packets of the target's queue pair, oldest first. */
  readonly inbox: Inbox<Received>;
  /** Only over RDMA CM: messages that are sent again. */
  readonly repetition?: CmRepetition;
  /** Ends the connection if the target has not, and forgets it. */
  close(): Promise<void>;
}

/** Messages of connection management that are sent again as if the answer had been lost. */
export interface CmRepetition {
  /** Sends the REQ once more; the name of the answer, or undefined. */
  repeatRequest(): Promise<string | undefined>;
  /**
   * Sends a REQ as a peer does that was restarted and has forgotten: the same queue pair, another communication ID. Returns the answer, and the reason
   * of a REJ; undefined when none came. A REP is refused.
   */
  requestAnew(): Promise<{ readonly name: string; readonly reason?: number } | undefined>;
  /** Sends a DREQ; whether a DREP came. `tries`: how often the DREQ is sent. */
  disconnect(tries?: number): Promise<boolean>;
}

/** Gets queue pairs of one target, one at a time. */
export interface Connector {
  /** Which way it goes. */
  readonly via: Via;
  /** The terms that it cannot meet, in words; undefined when it meets all. */
  lacks(terms: ConnectionTerms): string | undefined;
  /** Connects. Never rejects for what the target does. */
  connect(terms: ConnectionTerms): Promise<ConnectOutcome>;
}
