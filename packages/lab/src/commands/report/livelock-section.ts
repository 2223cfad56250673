import { htmlTable, renderBarChart } from '@rocev2/command';
import { formatRate } from 'rocev2/internal/core';
import { z } from 'zod';
import type { SectionReader } from './section.js';

const documentSchema = z.looseObject({
  runs: z
    .array(
      z.looseObject({
        op: z.string(),
        scheme: z.string(),
        lossRule: z.string(),
        messagesCompleted: z.number(),
        goodputBps: z.number(),
        packetsSent: z.number(),
        packetsDropped: z.number(),
        packetsRetransmitted: z.number(),
        linkUtilization: z.number(),
        efficiency: z.number(),
        closedForm: z.number().nullable(),
      }),
    )
    .min(1),
});

const percent = (share: number) => `${(share * 100).toFixed(2)} %`;

export const livelockSection: SectionReader = (document) => {
  const parsed = documentSchema.safeParse(document);
  if (!parsed.success) return undefined;
  const { runs } = parsed.data;
  const groups = [...new Set(runs.map(({ scheme }) => scheme))];
  const bars = (value: (run: (typeof runs)[number]) => number) =>
    runs.map((run) => ({
      label: `${run.op.toUpperCase()} ${run.scheme}`,
      value: value(run),
      group: groups.indexOf(run.scheme),
    }));
  const subtitle = `the switch drops ${[...new Set(runs.map(({ lossRule }) => lossRule))].join(', ')}`;
  return {
    title: 'Livelock',
    measures: runs.flatMap((run) => {
      const name = `${run.op.toUpperCase()} ${run.scheme}`;
      return [
        { name: `${name}: goodput`, value: run.goodputBps, text: formatRate(run.goodputBps) },
        { name: `${name}: useful packets`, value: run.efficiency, text: percent(run.efficiency) },
        { name: `${name}: link use`, value: run.linkUtilization, text: percent(run.linkUtilization) },
      ];
    }),
    body: [
      renderBarChart({ title: 'Goodput', subtitle, bars: bars((run) => run.goodputBps), format: formatRate }),
      renderBarChart({
        title: 'Link use',
        subtitle: 'share of the link that packets occupy: a busy link without goodput is a livelock',
        bars: bars((run) => run.linkUtilization),
        format: percent,
      }),
      renderBarChart({
        title: 'Useful packets',
        subtitle: 'packets of completed messages / packets sent',
        bars: bars((run) => run.efficiency),
        format: percent,
      }),
      htmlTable(
        ['Run', 'Messages', 'Goodput', 'Sent', 'Dropped', 'Retransmitted', 'Link use', 'Useful', 'In theory'],
        runs.map((run) => [
          `${run.op.toUpperCase()} ${run.scheme}`,
          run.messagesCompleted,
          formatRate(run.goodputBps),
          run.packetsSent,
          run.packetsDropped,
          run.packetsRetransmitted,
          percent(run.linkUtilization),
          percent(run.efficiency),
          run.closedForm === null ? '' : percent(run.closedForm),
        ]),
      ),
    ],
  };
};
