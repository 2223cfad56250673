/**
 * Which side owns the latency of a connection: sender, pacing, network, responder or application.
 *
 * The stage that takes most of the time says where to look (Bai et al., "Empowering Azure Storage with RDMA", NSDI 2023, §5); what the send
 * side waited for, and the event loops of both programs, say whose it is:
 *
 *     T6-T5  completed, not polled        the application
 *     T2-T1  not yet sent                 pacing, or a receiver that was not ready, or timeouts (network); else the sender
 *     T3-T2  being sent                   the same
 *     T4-T3  sent, not answered           a receiver that was not ready, or whose program stood still: responder; else the network
 *     T5-T4  answered, not completed      older work was not answered: the network
 *
 * A program whose event loop stands still owns what that explains, wherever it shows, if its NIC runs on that loop.
 */

import { formatNs } from '../core/units.js';
import type { WaitCause } from '../ring/telemetry-page.js';
import type { EstatsSnapshot, GroupRow, QpRow } from './snapshot.js';
import { CONSECUTIVE_STAGES, type StageName } from './stages.js';

export const OWNERS = ['sender', 'pacing', 'network', 'responder', 'application'] as const;
export type Owner = (typeof OWNERS)[number];

export interface Diagnosis {
  readonly conn: string;
  readonly op: string;
  /** Work requests looked at. */
  readonly count: number;
  /** Posted to polled. */
  readonly meanNs: number;
  readonly p99Ns: number;
  /** The stage that takes most of it, and its part of the mean, 0..1. */
  readonly stage: StageName;
  readonly share: number;
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
  fence: ['sender', 'work waited behind a fence until earlier work was done'],
  rnr: ['responder', 'the receiver was not ready (RNR NAK): no receive was posted'],
  pacing: ['pacing', 'rate control let packets go only later'],
};

type Verdict = readonly [owner: Owner, because: string];

/** One row an open connection and operation, the slowest first. `peers` are snapshots of other endpoints: their sides of the connections are looked up. */
export function diagnose(snapshot: EstatsSnapshot, peers: readonly EstatsSnapshot[]): Diagnosis[] {
  return snapshot.groups
    .filter(({ stage, status }) => stage === 't6_t1' && status === 'SUCCESS')
    .flatMap((whole) => {
      const qp = snapshot.qps.find(({ conn }) => conn === whole.conn);
      return qp === undefined ? [] : [diagnoseGroup(snapshot, whole, qp, peerOf(qp, snapshot, peers))];
    })
    .sort((a, b) => b.meanNs - a.meanNs);
}

function diagnoseGroup(
  snapshot: EstatsSnapshot,
  whole: GroupRow,
  qp: QpRow,
  peer: EstatsSnapshot | undefined,
): Diagnosis {
  const stages = snapshot.groups.filter(
    ({ conn, op, status, stage }) =>
      conn === whole.conn && op === whole.op && status === whole.status && CONSECUTIVE_STAGES.includes(stage),
  );
  const longest = stages.reduce((a, b) => (b.sumNs > a.sumNs ? b : a));
  const [owner, because] = judge(longest, snapshot, qp, peer);
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

function judge(longest: GroupRow, snapshot: EstatsSnapshot, qp: QpRow, peer: EstatsSnapshot | undefined): Verdict {
  const meanNs = longest.sumNs / longest.count;
  if (longest.stage === 't6_t5') {
    return ['application', `completions waited ${formatNs(meanNs)} on average until the program polled them`];
  }
  const stall = stallThatExplains(meanNs, snapshot);
  if (stall !== undefined) return ['application', `the event loop of this program ${stall}`];
  if (longest.stage === 't2_t1' || longest.stage === 't3_t2') return judgeSending(longest.stage, qp);
  if (longest.stage === 't5_t4') return ['network', 'answers to older work requests were late or lost'];
  return judgeWaitingForAnswer(meanNs, qp, peer);
}

function judgeSending(stage: StageName, { covered }: QpRow): Verdict {
  const waits = Object.entries(covered.waitsNs) as Array<[WaitCause, number]>;
  const [cause, waitedNs] = waits.reduce((a, b) => (b[1] > a[1] ? b : a));
  const busyNs = Math.max(covered.activeNs, sum(waits.map(([, ns]) => ns)));
  if (covered.timeoutsNs >= EXPLAINS * busyNs && busyNs > 0) return lossVerdict(covered);
  if (waitedNs >= WAIT_MATTERS * busyNs && waitedNs > 0) {
    const [owner, text] = WAITS[cause];
    return [owner, `${text} (${percent(waitedNs / busyNs)} of the busy time)`];
  }
  return stage === 't2_t1'
    ? ['sender', 'work is posted faster than it is sent: it waits behind earlier work']
    : ['sender', 'sending the packets of a message takes most of the time'];
}

function judgeWaitingForAnswer(meanNs: number, { covered }: QpRow, peer: EstatsSnapshot | undefined): Verdict {
  const { activeNs, waitsNs, timeoutsNs } = covered;
  if (waitsNs.rnr >= EXPLAINS * activeNs) {
    return ['responder', `${WAITS.rnr[1]} (${percent(waitsNs.rnr / activeNs)} of the busy time)`];
  }
  const stall = peer === undefined ? undefined : stallThatExplains(meanNs, peer);
  if (stall !== undefined) return ['responder', `the event loop of the peer's program ${stall}`];
  if (timeoutsNs >= EXPLAINS * activeNs) return lossVerdict(covered);
  const why = `answers came ${formatNs(meanNs)} after the last packet on average`;
  return [
    'network',
    peer === undefined
      ? `${why}; there is no telemetry of the peer, whose part in it is not known`
      : `${why}, and the peer's program did not stand still`,
  ];
}

function lossVerdict({ counters, activeNs, timeoutsNs }: QpRow['covered']): Verdict {
  const lost = `${counters.local_ack_timeout_err} timeouts, ${counters.tx_retransmitted} packets sent again`;
  return ['network', `packets were lost: ${lost} (${percent(timeoutsNs / activeNs)} of the busy time)`];
}

/** What the standing still of a program explains of a stage: its part of the time, times how long it lasted. Undefined when that is little. */
function stallThatExplains(meanNs: number, { loopDelay, engine }: EstatsSnapshot): string | undefined {
  if (engine === 'worker') return undefined; // Its NIC goes on meanwhile.
  const { stalledShare, typicalStallNs } = loopDelay;
  if (stalledShare * typicalStallNs < EXPLAINS * meanNs || meanNs === 0) return undefined;
  return `stood still ${percent(stalledShare)} of the time, typically ${formatNs(typicalStallNs)}`;
}

function peerOf(qp: QpRow, own: EstatsSnapshot, peers: readonly EstatsSnapshot[]): EstatsSnapshot | undefined {
  const { remote } = qp;
  return peers.find(
    (peer) =>
      peer.address === remote?.address &&
      peer.qps.some((other) => other.qpn === remote.qpn && other.remote?.qpn === qp.qpn) &&
      peer !== own,
  );
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((a, b) => a + b, 0);
}

function percent(share: number): string {
  return `${(Math.min(1, share) * 100).toFixed(0)} %`;
}
