import type { Column, Output } from '@rocev2/command';
import { formatRate } from 'rocev2/internal/core';
import type { LivelockRun } from './scheme-comparison.js';

type RunColumn = Column & { readonly value: (run: LivelockRun) => string | number };

const COLUMNS: readonly RunColumn[] = [
  { title: 'Op', align: 'left', value: (run) => run.op.toUpperCase() },
  { title: 'Recovery', align: 'left', value: (run) => run.scheme },
  { title: 'Messages', align: 'right', value: (run) => run.messagesCompleted },
  { title: 'Goodput', align: 'right', value: (run) => (run.goodputBps === 0 ? '0' : formatRate(run.goodputBps)) },
  { title: 'Sent', align: 'right', value: (run) => run.packetsSent },
  { title: 'Dropped', align: 'right', value: (run) => run.packetsDropped },
  { title: 'Resent', align: 'right', value: (run) => run.packetsRetransmitted },
  { title: 'Link use', align: 'right', value: (run) => percent(run.linkUtilization, 0) },
  { title: 'W', align: 'right', value: (run) => run.pipelineDepth?.toFixed(1) ?? '' },
  { title: 'Useful', align: 'right', value: (run) => percent(run.efficiency, 2) },
  { title: 'In theory', align: 'right', value: (run) => (run.closedForm === null ? '' : percent(run.closedForm, 2)) },
];

export function printRuns(output: Output, runs: readonly LivelockRun[]): void {
  output.table(
    COLUMNS,
    runs.map((run) => COLUMNS.map((column) => column.value(run))),
  );
}

function percent(share: number, digits: number): string {
  return `${(share * 100).toFixed(digits)} %`;
}
