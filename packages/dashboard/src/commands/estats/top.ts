import { setTimeout as delay } from 'node:timers/promises';
import {
  attach,
  copyWords,
  counted,
  defineDocument,
  type EndpointDocument,
  type EndpointOptions,
  type EndpointReading,
  type Endpoints,
  endpointName,
  leftAligned,
  type Output,
  rightAligned,
} from '@rocev2/command';
import { formatNs, formatRate, NS_PER_MS } from 'rocev2/internal/core';
import { CONSECUTIVE_STAGES, type EstatsSnapshot, type GroupRow, type QpRow, stageLabel } from 'rocev2/internal/estats';

const ESTATS_TOP_DOCUMENT = defineDocument<Endpoints<EndpointDocument>>('estats-top');

export interface TopOptions extends EndpointOptions {
  readonly interval: number;
  readonly once?: true;
}

const CLEAR_SCREEN = '\u001b[H\u001b[2J';

const COLUMNS = [
  ...leftAligned('connection', 'op', 'status'),
  ...rightAligned('count', 'p50', 'p99', 'max'),
  ...leftAligned('where the time goes'),
];

export async function top(options: TopOptions, output: Output): Promise<void> {
  const { interrupted, stdout } = output.io;
  const refreshes = stdout.isTTY === true && options.once !== true && !output.json;
  let before: readonly EndpointReading[] = [];
  for (;;) {
    const endpoints = await attach(options.endpoint, options.minutes);
    if (refreshes) stdout.write(CLEAR_SCREEN);
    for (const { snapshot } of endpoints) {
      const earlier = before.find(
        (other) => other.snapshot.pid === snapshot.pid && other.snapshot.address === snapshot.address,
      );
      show(snapshot, earlier?.snapshot, output);
    }
    output.document(ESTATS_TOP_DOCUMENT, { endpoints: endpoints.map(({ snapshot }) => snapshot as EndpointDocument) });
    if (!refreshes) return;
    before = endpoints;
    await delay(options.interval / NS_PER_MS, undefined, { signal: interrupted }).catch(() => {});
    if (interrupted.aborted) return;
  }
}

function show(snapshot: EstatsSnapshot, before: EstatsSnapshot | undefined, output: Output): void {
  const { loopDelay, coveredSeconds, uptimeSeconds } = snapshot;
  output.line(
    `${output.colors.bold(endpointName(snapshot))}  ${snapshot.port}, up ${uptimeSeconds.toFixed(0)} s, ` +
      `last ${coveredSeconds.toFixed(0)} s shown, event loop late by ${formatNs(loopDelay.p99Ns)} (p99)`,
  );
  for (const { conn, total, protection, copies } of snapshot.qps) {
    const earlier = before?.qps.find((qp) => qp.conn === conn)?.total.counters;
    const seconds = earlier === undefined ? uptimeSeconds : uptimeSeconds - before!.uptimeSeconds;
    const rate = (name: 'tx_bytes' | 'rx_bytes') =>
      formatRate(((total.counters[name] - (earlier?.[name] ?? 0)) * 8) / Math.max(seconds, 1e-3));
    const { tx_retransmitted, local_ack_timeout_err, rnr_nak_received } = total.counters;
    output.line(
      `  ${conn}: sends ${rate('tx_bytes')}, receives ${rate('rx_bytes')}; ${tx_retransmitted} packets sent again, ` +
        `${local_ack_timeout_err} timeouts, ${rnr_nak_received} RNR NAKs`,
    );
    if (protection !== undefined) output.line(`    ${protectionWords(protection)}`);
    const words = copies && copyWords(copies);
    if (words !== undefined) output.line(`    ${words}`);
  }
  const rows = snapshot.groups.filter(({ stage }) => stage === 't6_t1').sort((a, b) => b.count - a.count);
  if (rows.length === 0) output.line('  no work request was completed and polled in this period');
  else {
    output.table(
      COLUMNS,
      rows.map((row) => [
        row.conn,
        row.op,
        row.status,
        row.count,
        formatNs(row.p50Ns),
        formatNs(row.p99Ns),
        formatNs(row.maxNs),
        shares(snapshot, row),
      ]),
    );
  }
  output.line();
}

function protectionWords(protection: NonNullable<QpRow['protection']>): string {
  const { peer, cipher, sendSpi, receiveSpi, sealed, opened, replayed, forged, rekeys } = protection;
  const spis = `SPI 0x${sendSpi.toString(16)} out, 0x${receiveSpi.toString(16)} in`;
  const changes = `keys changed ${counted(rekeys, 'time')}`;
  return `protected: ${peer}, ${cipher}, ${spis}; sealed ${sealed}, opened ${opened}, ${changes}, dropped ${replayed} replayed, ${forged} forged`;
}

function shares(snapshot: EstatsSnapshot, whole: GroupRow): string {
  return snapshot.groups
    .filter(
      ({ conn, op, status, stage }) =>
        conn === whole.conn && op === whole.op && status === whole.status && CONSECUTIVE_STAGES.includes(stage),
    )
    .map(({ stage, sumNs }) => ({ stage, share: whole.sumNs === 0 ? 0 : sumNs / whole.sumNs }))
    .filter(({ share }) => share >= 0.05)
    .sort((a, b) => b.share - a.share)
    .map(({ stage, share }) => `${stageLabel(stage)} ${(share * 100).toFixed(0)} %`)
    .join(', ');
}
