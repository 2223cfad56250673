/**
 * The side that causes the latency of a connection: sender, pacing, network, responder or application.
 *
 * The stage that takes most of the time locates the cause (Bai et al., "Empowering Azure Storage with RDMA", NSDI 2023,
 * §5); the waits of the send side, and the event loops of both programs, show which side it is:
 *
 *     T6-T5  completed, not polled        the application
 *     T2-T1  not yet sent                 pacing, a receiver not ready, or timeouts (network); else the sender
 *     T3-T2  being sent                   the same
 *     T4-T3  sent, not answered           receiver not ready, or its program stalled: responder; else the network
 *     T5-T4  answered, not completed      older work was not answered: the network
 *
 * If a program's event loop, with the NIC on it, was stalled while packets waited to be sent or received, the program
 * is the cause of that time.
 */

import { formatNs } from '../../core/units.js';
import type { WaitCause } from '../../memory/ring/telemetry-page.js';
import type { EstatsSnapshot, GroupRow, QpRow } from './endpoint-document.js';
import { CONSECUTIVE_STAGES, type StageName } from './stages.js';

/** Possible causes of a latency. */
export const OWNERS = ['sender', 'pacing', 'network', 'responder', 'application'] as const;
/** One of {@link OWNERS}. */
export type Owner = (typeof OWNERS)[number];

/** Cause of the latency of one connection and operation. */
export interface Diagnosis {
  /** Name of the connection. */
  readonly conn: string;
  /** `ibv_wc_opcode` by name. */
  readonly op: string;
  /** Work requests looked at. */
  readonly count: number;
  /** Posted to polled. */
  readonly meanNs: number;
  /** 99th percentile of the same. */
  readonly p99Ns: number;
  /** The stage that takes most of it. */
  readonly stage: StageName;
  /** Its part of the mean, 0..1. */
  readonly share: number;
  /** Whose it is. */
  readonly owner: Owner;
  /** Why, in a sentence. */
  readonly because: string;
}

/** A cause owns a stage when it explains at least this part of it. */
const EXPLAINS = 0.5;
/** A wait that took less than this part of the busy time is not the reason for a queue. */
const WAIT_MATTERS = 0.25;

const WAITS: Readonly<Record<WaitCause, readonly [owner: Owner, text: string]>> = {
  window: ['sender', 'the window was full: no more packets may be in flight to this peer'],
  readLimit: ['sender', 'max_rd_atomic READs and atomics were outstanding'],
  fence: ['sender', 'work waited at a fence until earlier work was done'],
  rnr: ['responder', 'the receiver was not ready (RNR NAK): no receive was posted'],
  pacing: ['pacing', 'rate control let packets go only later'],
};

type Verdict = readonly [owner: Owner, because: string];

interface Suspect {
  readonly owner: Owner;
  readonly part: number;
  readonly text: string;
}

export function diagnose(snapshot: EstatsSnapshot, peers: readonly EstatsSnapshot[]): Diagnosis[] {
  return snapshot.groups
    .filter(({ stage, status }) => stage === 't6_t1' && status === 'SUCCESS')
    .flatMap((whole) => {
      const qp = snapshot.qps.find(({ conn }) => conn === whole.conn);
      return qp === undefined ? [] : [diagnoseGroup(snapshot, whole, qp, peerOf(qp, peers))];
    })
    .sort((a, b) => b.meanNs - a.meanNs);
}

function diagnoseGroup(snapshot: EstatsSnapshot, whole: GroupRow, qp: QpRow, peer: PeerView | undefined): Diagnosis {
  const stages = snapshot.groups.filter(
    ({ conn, op, status, stage }) =>
      conn === whole.conn && op === whole.op && status === whole.status && CONSECUTIVE_STAGES.includes(stage),
  );
  const longest = stages.reduce((a, b) => (b.sumNs > a.sumNs ? b : a));
  const [owner, because] = verdictOn(longest, snapshot, qp, peer);
  return {
    conn: whole.conn,
    op: whole.op,
    count: whole.count,
    meanNs: whole.sumNs / whole.count,
    p99Ns: whole.p99Ns,
    stage: longest.stage,
    share: whole.sumNs === 0 ? 0 : longest.sumNs / whole.sumNs,
    owner,
    because,
  };
}

function verdictOn(longest: GroupRow, snapshot: EstatsSnapshot, qp: QpRow, peer?: PeerView): Verdict {
  const meanNs = longest.sumNs / longest.count;
  switch (longest.stage) {
    case 't6_t5':
      return ['application', `completions waited ${formatNs(meanNs)} on average until the program polled them`];
    case 't5_t4':
      return ['network', 'answers to older work requests were late or lost'];
    case 't4_t3':
      return responseVerdict(longest, snapshot, qp, peer);
    default:
      return sendVerdict(longest.stage, meanNs, snapshot, qp);
  }
}

function sendVerdict(stage: StageName, meanNs: number, snapshot: EstatsSnapshot, { covered }: QpRow): Verdict {
  const waits = Object.entries(covered.waitsNs) as Array<[WaitCause, number]>;
  const busyNs = Math.max(covered.activeNs, covered.stalledUnsentNs, sum(waits.map(([, ns]) => ns)));
  const certain = worst([
    stall('application', covered.stalledUnsentNs, snapshot, meanNs, busyNs),
    loss(covered, busyNs),
  ]);
  if (certain.part >= EXPLAINS) return [certain.owner, certain.text];
  const [cause, waitedNs] = waits.reduce((a, b) => (b[1] > a[1] ? b : a));
  if (waitedNs > 0 && waitedNs >= WAIT_MATTERS * busyNs) {
    const [owner, text] = WAITS[cause];
    return [owner, `${text} (${percent(waitedNs / busyNs)} of the busy time)`];
  }
  return stage === 't2_t1'
    ? ['sender', 'work is posted faster than it is sent: it waits behind earlier work']
    : ['sender', 'sending the packets of a message takes most of the time'];
}

function responseVerdict(longest: GroupRow, snapshot: EstatsSnapshot, qp: QpRow, peer?: PeerView): Verdict {
  const meanNs = longest.sumNs / longest.count;
  const { covered } = qp;
  // The windows of the two ends are not the same time.
  const perTime = peer === undefined ? 0 : qp.observedSeconds / Math.max(peer.qp.observedSeconds, 1e-9);
  const { activeNs, waitsNs } = covered;
  const notReady: Suspect = {
    owner: 'responder',
    part: activeNs === 0 ? 0 : waitsNs.rnr / activeNs,
    text: `${WAITS.rnr[1]} (${percent(waitsNs.rnr / activeNs)} of the busy time)`,
  };
  const suspects = [
    notReady,
    stall('application', covered.stalledUnheardNs, snapshot, meanNs, activeNs),
    ...(peer === undefined
      ? []
      : [
          stall('responder', peer.qp.covered.stalledUnheardNs * perTime, peer.snapshot, meanNs, activeNs),
          pacedResponses(longest.op, peer.qp.covered.waitsNs.pacing * perTime, activeNs),
        ]),
    loss(covered, activeNs, (peer?.qp.covered.counters.duplicate_request ?? 0) * perTime),
  ];
  const { owner, part, text } = worst(suspects);
  if (part >= EXPLAINS) return [owner, text];
  const why = `answers came ${formatNs(meanNs)} after the last packet on average`;
  return [
    'network',
    peer === undefined
      ? `${why}; there is no telemetry of the peer, whose part in it is not known`
      : `${why}, and neither losses nor the programs at both ends explain it`,
  ];
}

/** No request suffers from more than one stall. */
function stall(
  owner: Owner,
  stalledNs: number,
  { engine, loopDelay }: EstatsSnapshot,
  meanNs: number,
  busyNs: number,
): Suspect {
  const { stalledShare, typicalStallNs } = loopDelay;
  const part = busyNs === 0 ? 0 : Math.min(1, stalledNs / busyNs, typicalStallNs / meanNs);
  return {
    owner,
    part: engine === 'worker' ? 0 : part,
    text: `the event loop of ${owner === 'responder' ? "the peer's" : 'this'} program was stalled ${percent(stalledShare)} of the time, typically ${formatNs(typicalStallNs)}, while packets waited for it`,
  };
}

function pacedResponses(op: string, pacedNs: number, busyNs: number): Suspect {
  const part = op === 'RDMA_READ' && busyNs > 0 ? pacedNs / busyNs : 0;
  return {
    owner: 'pacing',
    part,
    text: `rate control of the responder let its data go only later (${percent(part)} of the busy time)`,
  };
}

function loss({ counters, timeoutsNs }: Totals, busyNs: number, duplicates = 0): Suspect {
  const resent = counters.tx_retransmitted;
  const reallyLost = resent === 0 ? 0 : Math.max(0, 1 - duplicates / resent);
  const part = busyNs === 0 ? 0 : (timeoutsNs / busyNs) * reallyLost;
  return {
    owner: 'network',
    part,
    text: `packets were lost: ${counters.local_ack_timeout_err} timeouts, ${resent} packets sent again (${percent(part)} of the busy time)`,
  };
}

type Totals = QpRow['covered'];

interface PeerView {
  readonly snapshot: EstatsSnapshot;
  readonly qp: QpRow;
}

function peerOf({ remote, qpn }: QpRow, peers: readonly EstatsSnapshot[]): PeerView | undefined {
  for (const snapshot of peers) {
    if (snapshot.address !== remote?.address) continue;
    const qp = snapshot.qps.find((other) => other.qpn === remote.qpn && other.remote?.qpn === qpn);
    if (qp !== undefined) return { snapshot, qp };
  }
  return undefined;
}

function worst(suspects: readonly Suspect[]): Suspect {
  return suspects.reduce((a, b) => (b.part > a.part ? b : a));
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((a, b) => a + b, 0);
}

function percent(share: number): string {
  return `${(Math.min(1, share) * 100).toFixed(0)} %`;
}
