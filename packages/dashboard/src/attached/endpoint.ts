import { copiesOf } from '@rocev2/command';
import { pauseFrames } from '@rocev2/lab/internal';
import { formatNs } from 'rocev2/internal/core';
import {
  CONSECUTIVE_STAGES,
  diagnose,
  type EstatsSnapshot,
  type QpRow,
  stageLabel,
  stageText,
} from 'rocev2/internal/estats';
import { COUNTER_NAMES, type CounterName, type QpCounterName } from 'rocev2/internal/memory';
import type { AttachedConnection, AttachedStages, EndpointDetail } from '../messages/attached.js';
import { connectionName } from '../messages/connection-name.js';
import { latencyRows } from './latency-rows.js';
import { counted, firstTrouble, type ProgramEvent, type ProgramKind } from './program-kind.js';
import { type Change, growth, moved, sum, type TimedChange } from './rates.js';

const CONNECTIONS_SHOWN = 8;
const VERDICTS_SHOWN = 16;
const PROTECTIONS_SHOWN = 32;
const DROP_PREFIX = 'secure_drop_';
const DROPS = COUNTER_NAMES.filter((name) => name.startsWith(DROP_PREFIX));
const LOOP_DELAY_BAD_NS = 50e6;

export const ENDPOINT: ProgramKind<'endpoint'> = {
  sample: (reading) => {
    const { now, seconds } = reading;
    const device = (name: CounterName) => now.device.counters[name] ?? 0;
    const perSecond = (name: CounterName) => movedOf(reading, name) / seconds;
    return {
      inBps: 8 * perSecond('rx_bytes'),
      outBps: 8 * perSecond('tx_bytes'),
      copiedBps: 8 * perSecond('direct_bytes'),
      resentPerSecond: perSecond('tx_retransmitted'),
      connections: busiest(now.qps).map((qp) => connection(qp, reading)),
      totals: {
        copies: copiesOf(now.device.counters).operations,
        resent: device('tx_retransmitted'),
        naks: device('packet_seq_err'),
        rnrNaks: device('rnr_nak_received'),
        timeouts: device('local_ack_timeout_err'),
        cnpsSent: device('np_cnp_sent'),
        cnpsReceived: device('rp_cnp_handled') + device('rp_cnp_ignored'),
        marks: device('np_ecn_marked_roce_packets'),
        pauses: pauseFrames(now.device.counters, 'rx'),
        errors: device('req_cqe_error') + device('resp_cqe_error'),
      },
    };
  },

  detail: (now, others): EndpointDetail => ({
    port: now.port,
    connectionCount: now.qps.length,
    latency: latencyRows(now.latency),
    stages: stagesByOp(now),
    verdicts: diagnose(
      now,
      others.filter((other) => other.kind === 'endpoint'),
    )
      .slice(0, VERDICTS_SHOWN)
      .map(({ conn, op, owner, because, meanNs }) => ({ conn, op, owner, because, meanNs })),
    loopDelayP99Ns: now.loopDelay.p99Ns,
    protections: now.qps
      .flatMap(({ conn, protection }) => (protection === undefined ? [] : [{ conn, ...protection }]))
      .slice(0, PROTECTIONS_SHOWN),
    protectionDrops: DROPS.map((name) => ({
      reason: name.slice(DROP_PREFIX.length).replaceAll('_', ' '),
      count: now.device.counters[name] ?? 0,
    })).filter(({ count }) => count > 0),
  }),

  health: (change) => {
    const happened = (...names: readonly CounterName[]) => names.some((name) => movedOf(change, name) > 0);
    const lateNs = change.now.loopDelay.p99Ns;
    return firstTrouble([
      happened('req_cqe_error', 'resp_cqe_error') && 'work requests fail',
      happened('local_ack_timeout_err') && 'timeouts',
      happened('rnr_nak_received') && 'its peer is not ready (RNR)',
      happened('tx_retransmitted') && 'sends packets again',
      happened(...DROPS) && 'drops packets that are forged, replayed or plain',
      lateNs > LOOP_DELAY_BAD_NS && `its event loop is late by ${formatNs(lateNs)} (p99)`,
    ]);
  },

  events: (change) => [
    ...counted('loss', 'packet sent again', movedOf(change, 'tx_retransmitted')),
    ...counted('loss', 'NAK: PSN sequence error', movedOf(change, 'packet_seq_err')),
    ...counted('loss', 'RNR NAK', movedOf(change, 'rnr_nak_received')),
    ...counted('timeout', 'acknowledgement timeout', movedOf(change, 'local_ack_timeout_err')),
    ...counted('notice', 'keys of protected packets changed', movedOf(change, 'secure_rekeys')),
    ...counted('failure', 'packet dropped: no peer has sealed it', sum(DROPS.map((name) => movedOf(change, name)))),
    ...newDumps(change),
    ...connectionChanges(change),
  ],
};

function movedOf(change: Change<EstatsSnapshot>, name: CounterName): number {
  return moved(change, ({ device: { counters } }) => counters[name] ?? 0);
}

/** By what they have moved since they were opened, so that charts do not jump; in the order of the document. */
function busiest(qps: readonly QpRow[]): readonly QpRow[] {
  if (qps.length <= CONNECTIONS_SHOWN) return qps;
  const bytes = ({ total: { counters } }: QpRow) => counters.tx_bytes + counters.rx_bytes;
  const chosen = new Set([...qps].sort((a, b) => bytes(b) - bytes(a)).slice(0, CONNECTIONS_SHOWN));
  return qps.filter((qp) => chosen.has(qp));
}

function connection(
  { conn, total, rateBps, alpha }: QpRow,
  { before, seconds }: TimedChange<EstatsSnapshot>,
): AttachedConnection {
  const earlier = before.qps.find((qp) => qp.conn === conn)?.total.counters;
  const bps = (name: QpCounterName) => (8 * growth(total.counters[name], earlier?.[name])) / seconds;
  return { conn, sentBps: bps('tx_bytes'), receivedBps: bps('rx_bytes'), rateBps, alpha };
}

function stagesByOp({ groups }: EstatsSnapshot): AttachedStages[] {
  const good = groups.filter(({ status }) => status === 'SUCCESS');
  const ops = [...new Set(good.map(({ op }) => op))];
  return ops.map((op) => {
    const sumsNs = CONSECUTIVE_STAGES.map((stage) =>
      sum(good.filter((row) => row.op === op && row.stage === stage).map(({ sumNs }) => sumNs)),
    );
    const wholeNs = sum(sumsNs);
    return {
      op,
      shares: CONSECUTIVE_STAGES.map((stage, i) => ({
        stage: stageLabel(stage),
        text: stageText(stage),
        share: wholeNs === 0 ? 0 : sumsNs[i] / wholeNs,
      })),
    };
  });
}

function newDumps({ now, before }: Change<EstatsSnapshot>): ProgramEvent[] {
  const last = before.dumps.at(-1)?.time ?? '';
  const fresh = now.dumps.filter(({ time, reason }) => time > last && reason !== 'asked');
  const workOf = ({ reason, op, status }: (typeof fresh)[number]) => `${reason} ${op} ${status}`;
  return [...new Set(fresh.map(workOf))].map((work) => {
    const dumps = fresh.filter((dump) => workOf(dump) === work);
    const [{ reason, op, status, conn }] = dumps;
    const longestNs = Math.max(...dumps.map(({ wholeNs = 0 }) => wholeNs));
    const where = dumps.length === 1 ? connectionName(conn) : `${dumps.length} times`;
    return reason === 'slow'
      ? { kind: 'slow', text: `slow: ${op} after ${formatNs(longestNs)}, ${where}; dumped` }
      : { kind: 'failure', text: `${op} failed with ${status} after ${formatNs(longestNs)}, ${where}; dumped` };
  });
}

function connectionChanges({ now, before }: Change<EstatsSnapshot>): ProgramEvent[] {
  const opened = now.qps.filter(({ conn }) => before.qps.every((qp) => qp.conn !== conn)).length;
  const closed = before.qps.filter(({ conn }) => now.qps.every((qp) => qp.conn !== conn)).length;
  return [
    ...counted('notice', 'a queue pair was opened or connected', opened),
    ...counted('notice', 'a queue pair was closed', closed),
  ];
}
