/** An endpoint: its connections, the stages of its latency and who owns it, its repairs. */

import { formatNs } from '../../../core/units.js';
import { diagnose } from '../../../estats/diagnosis.js';
import type { EstatsSnapshot, QpRow } from '../../../estats/snapshot.js';
import { CONSECUTIVE_STAGES, stageText } from '../../../estats/stages.js';
import type { QpCounterName } from '../../../ring/telemetry-page.js';
import type { AttachedConnection, AttachedStages, EndpointDetail } from '../../../web/attached.js';
import { latencyRows } from './latency-rows.js';
import { counted, firstTrouble, type Happening, type ProgramKind } from './program-kind.js';
import { growth, type Interval, perSecond, sum } from './rates.js';

/** As many as a chart can tell apart. */
const CONNECTIONS_SHOWN = 8;
const VERDICTS_SHOWN = 16;
/** Work that is slower than this on the program's side makes its health remarkable: an event loop that is late by so much at p99. */
const LOOP_DELAY_BAD_NS = 50e6;

type Reading = Interval<EstatsSnapshot>;

export const ENDPOINT: ProgramKind<'endpoint'> = {
  sample: (reading) => {
    const { now } = reading;
    const device = (name: string) => now.device.counters[name] ?? 0;
    const moved = (name: string) => perSecond(reading, ({ device: { counters } }) => counters[name] ?? 0);
    return {
      inBps: 8 * moved('rx_bytes'),
      outBps: 8 * moved('tx_bytes'),
      resentPerSecond: moved('tx_retransmitted'),
      connections: busiest(now.qps).map((qp) => connection(qp, reading)),
      totals: {
        resent: device('tx_retransmitted'),
        naks: device('packet_seq_err'),
        rnrNaks: device('rnr_nak_received'),
        timeouts: device('local_ack_timeout_err'),
        cnpsSent: device('np_cnp_sent'),
        cnpsReceived: device('rp_cnp_handled') + device('rp_cnp_ignored'),
        marks: device('np_ecn_marked_roce_packets'),
        pauses: sum(PRIORITIES.map((priority) => device(`rx_prio${priority}_pause`))),
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
  }),

  health: (reading) => {
    const moved = (...names: readonly string[]) =>
      sum(names.map((name) => perSecond(reading, ({ device: { counters } }) => counters[name] ?? 0)));
    const lateNs = reading.now.loopDelay.p99Ns;
    return firstTrouble([
      moved('req_cqe_error', 'resp_cqe_error') > 0 && 'work requests fail',
      moved('local_ack_timeout_err') > 0 && 'timeouts',
      moved('rnr_nak_received') > 0 && 'its peer is not ready (RNR)',
      moved('tx_retransmitted') > 0 && 'sends packets again',
      lateNs > LOOP_DELAY_BAD_NS && `its event loop is late by ${formatNs(lateNs)} (p99)`,
    ]);
  },

  happenings: (reading) => {
    const moved = (name: string) =>
      growth(reading.now.device.counters[name] ?? 0, reading.before.device.counters[name]);
    return [
      ...counted('loss', 'packets sent again', moved('tx_retransmitted')),
      ...counted('loss', 'NAK: PSN sequence error', moved('packet_seq_err')),
      ...counted('loss', 'RNR NAK', moved('rnr_nak_received')),
      ...counted('timeout', 'acknowledgement timeout', moved('local_ack_timeout_err')),
      ...newDumps(reading),
      ...connectionChanges(reading),
    ];
  },
};

const PRIORITIES = [0, 1, 2, 3, 4, 5, 6, 7];

/** By what they have moved since they were opened, so that charts do not jump; in the order of the document. */
function busiest(qps: readonly QpRow[]): readonly QpRow[] {
  if (qps.length <= CONNECTIONS_SHOWN) return qps;
  const bytes = ({ total: { counters } }: QpRow) => counters.tx_bytes + counters.rx_bytes;
  const chosen = new Set([...qps].sort((a, b) => bytes(b) - bytes(a)).slice(0, CONNECTIONS_SHOWN));
  return qps.filter((qp) => chosen.has(qp));
}

function connection({ conn, total, rateBps, alpha }: QpRow, { before, seconds }: Reading): AttachedConnection {
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
        stage: stage.toUpperCase().replace('_', '-'),
        text: stageText(stage),
        share: wholeNs === 0 ? 0 : sumsNs[i] / wholeNs,
      })),
    };
  });
}

/** Those of one kind of work together: what is slow is often slow for all connections at once. */
function newDumps({ now, before }: Reading): Happening[] {
  const last = before.dumps.at(-1)?.time ?? '';
  const fresh = now.dumps.filter(({ time, reason }) => time > last && reason !== 'asked');
  const workOf = ({ reason, op, status }: (typeof fresh)[number]) => `${reason} ${op} ${status}`;
  return [...new Set(fresh.map(workOf))].map((work) => {
    const dumps = fresh.filter((dump) => workOf(dump) === work);
    const [{ reason, op, status, conn }] = dumps;
    const longestNs = Math.max(...dumps.map(({ wholeNs = 0 }) => wholeNs));
    const where = dumps.length === 1 ? conn : `${dumps.length} times`;
    return reason === 'slow'
      ? { kind: 'slow', text: `slow: ${op} after ${formatNs(longestNs)}, ${where}; dumped` }
      : { kind: 'failure', text: `${op} failed with ${status} after ${formatNs(longestNs)}, ${where}; dumped` };
  });
}

function connectionChanges({ now, before }: Reading): Happening[] {
  const opened = now.qps.filter(({ conn }) => before.qps.every((qp) => qp.conn !== conn)).length;
  const closed = before.qps.filter(({ conn }) => now.qps.every((qp) => qp.conn !== conn)).length;
  return [
    ...counted('notice', 'a queue pair was opened or connected', opened),
    ...counted('notice', 'a queue pair was closed', closed),
  ];
}
