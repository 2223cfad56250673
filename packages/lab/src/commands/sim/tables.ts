import { type Column, counted, leftAligned, type Output, rightAligned } from '@rocev2/command';
import { formatBytes, formatNs, formatRate } from 'rocev2/internal/core';
import type {
  BufferResult,
  CompletionResult,
  FlowResult,
  QueueResult,
  ScenarioResult,
  SlowdownResult,
} from '../../sim/scenario/result.js';

export const FLOW_COLUMNS: readonly Column[] = [
  ...leftAligned('Flow', 'From', 'To'),
  ...rightAligned('Goodput', 'Completed in', 'Retransmitted', 'CNPs'),
];

export function flowRow(flow: FlowResult): (string | number)[] {
  const { id, from, to, goodputBps, completionNs, retransmittedPackets, cnps, failure } = flow;
  const completed = completionNs === null ? '' : formatNs(completionNs);
  return [id, from, to, formatRate(goodputBps), failure ?? completed, retransmittedPackets, cnps];
}

export const QUEUE_COLUMNS: readonly Column[] = [
  ...leftAligned('Queue'),
  ...rightAligned('Mean', 'Median', 'p99', 'Max', 'Link use', 'Marked', 'Dropped', 'Pauses sent', 'received'),
];

export function isTelling({ meanBytes, pauseFrames, receivedPauseFrames, droppedPackets }: QueueResult): boolean {
  return meanBytes >= 1 || pauseFrames > 0 || receivedPauseFrames > 0 || droppedPackets > 0;
}

export function queueRow(queue: QueueResult): (string | number)[] {
  return [
    queue.port,
    kilobytes(queue.meanBytes),
    kilobytes(queue.p50Bytes),
    kilobytes(queue.p99Bytes),
    kilobytes(queue.maxBytes),
    `${(queue.utilization * 100).toFixed(1)} %`,
    queue.markedPackets,
    queue.droppedPackets,
    queue.pauseFrames,
    queue.receivedPauseFrames,
  ];
}

export const BUFFER_COLUMNS: readonly Column[] = [
  ...leftAligned('Memory of'),
  ...rightAligned('Shared', 'peak', 'Headroom', 'peak'),
];

export function bufferRow(buffer: BufferResult): (string | number)[] {
  const { sharedBytes, sharedMaxBytes, headroomBytes, headroomMaxBytes } = buffer;
  return [buffer.switch, ...[sharedBytes, sharedMaxBytes, headroomBytes, headroomMaxBytes].map(kilobytes)];
}

export const SLOWDOWN_COLUMNS: readonly Column[] = rightAligned(
  'Flows up to',
  'Flows',
  'unfinished',
  'Slowdown p50',
  'p95',
  'p99',
);

export const SLOWDOWN_FLOWS_MIN = 20;

export function slowdownRow({ bytesMax, count, unfinished, p50, p95, p99 }: SlowdownResult): (string | number)[] {
  return [kilobytes(bytesMax), count, unfinished, ...[p50, p95, p99].map((times) => times.toFixed(2))];
}

export function summaryLines(result: ScenarioResult): Array<{ readonly label: string; readonly text: string }> {
  const { summary, virtualSeconds, wallSeconds, packetEvents, eventsPerSecond, seed, traceHash } = result;
  const lines = [
    {
      label: 'run',
      text: `${formatNs(virtualSeconds * 1e9)} in ${wallSeconds.toFixed(2)} s; ${packetEvents} packet events, ${(eventsPerSecond / 1e6).toFixed(2)} million a second`,
    },
    { label: 'trace', text: `${traceHash} (seed ${seed})` },
    {
      label: 'goodput',
      text: `${formatRate(summary.goodputBps)}, ${(summary.efficiency * 100).toFixed(2)} % of the payload rate that the links can carry${theory(summary.theoreticalEfficiency)}`,
    },
    {
      label: 'shares',
      text: `${formatRate(summary.minGoodputBps)} to ${formatRate(summary.maxGoodputBps)}, Jain ${summary.jain.toFixed(4)}`,
    },
    {
      label: 'queue',
      text: `${formatBytes(Math.round(summary.queueMeanBytes))} mean, ${formatBytes(Math.round(summary.queueP99Bytes))} p99 at the fullest egress`,
    },
    {
      label: 'signals',
      text: `${summary.markedPackets} marked, ${summary.cnps} CNPs, ${summary.pauseFrames} pause frames, ${summary.droppedPackets} dropped, ${summary.retransmittedPackets} retransmitted`,
    },
  ];
  if (summary.completions.count > 0) lines.push({ label: 'completed', text: completionText(summary.completions) });
  if (summary.smallCompletions.count > 0) {
    lines.push({ label: 'below 100 KB', text: completionText(summary.smallCompletions) });
  }
  if (summary.failedFlows > 0) lines.push({ label: 'failed', text: counted(summary.failedFlows, 'flow') });
  return lines;
}

function theory(efficiency: number | null): string {
  return efficiency === null ? '' : ` (closed form: ${(efficiency * 100).toFixed(2)} %)`;
}

function completionText({ count, unfinished, p50Ns, p90Ns, p99Ns }: CompletionResult): string {
  const times = `${count} flows in ${formatNs(p50Ns ?? 0)} median, ${formatNs(p90Ns ?? 0)} p90, ${formatNs(p99Ns ?? 0)} p99`;
  return unfinished === 0 ? times : `${times}, and ${unfinished} unfinished, whose time so far counts`;
}

function kilobytes(bytes: number): string {
  return `${(bytes / 1000).toFixed(1)} KB`;
}

const FLOWS_SHOWN = 24;

export function printResult(result: ScenarioResult, output: Output): void {
  for (const { label, text } of summaryLines(result)) output.line(`  ${label.padEnd(14)}${text}`);
  output.line();
  if (result.flows.length <= FLOWS_SHOWN) output.table(FLOW_COLUMNS, result.flows.map(flowRow));
  else output.line(`${result.flows.length} flows; --json and --report show each`);
  output.line();
  output.table(QUEUE_COLUMNS, result.queues.filter(isTelling).map(queueRow));
  if (result.buffers.length > 0) {
    output.line();
    output.table(BUFFER_COLUMNS, result.buffers.map(bufferRow));
  }
  if (result.flows.filter(({ completionNs }) => completionNs !== null).length >= SLOWDOWN_FLOWS_MIN) {
    output.line();
    output.table(SLOWDOWN_COLUMNS, result.slowdowns.map(slowdownRow));
  }
  if (result.warnings.length > 0) output.line();
  for (const warning of result.warnings) output.line(`${output.colors.yellow('warning')}  ${warning}`);
  if (result.assertions.length > 0) output.line();
  for (const { name, ok, detail } of result.assertions) {
    const mark = ok ? output.colors.green('ok    ') : output.colors.red('FAILED');
    output.line(`${mark}  ${name}: ${detail}`);
  }
}
