import {
  barRows,
  COLORS,
  colorLegend,
  htmlTable,
  TRANSFER_TITLES,
  toneOfShare,
  verdictMarkup,
} from '@rocev2/command/plot';
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

type Run = z.infer<typeof documentSchema>['runs'][number];

const GOODPUT = COLORS.data;
const BARS = [
  { label: 'goodput', color: GOODPUT, value: ({ goodputBps }: Run) => goodputBps, text: formatRate },
  {
    label: 'link use: a busy link without goodput is a livelock',
    color: COLORS.link,
    value: ({ linkUtilization }: Run) => linkUtilization,
    text: percent,
  },
  {
    label: 'useful packets: of completed messages',
    color: COLORS.ack,
    value: ({ efficiency }: Run) => efficiency,
    text: percent,
  },
] as const;

/** Below this share of useful packets, a busy link is a livelock. */
const STUCK_SHARE = 0.01;
const BUSY_SHARE = 0.5;

/** On the run that wastes most. */
function verdictOf(runs: readonly Run[]): string {
  const [worst] = [...runs].sort((a, b) => a.efficiency - b.efficiency);
  const { op, scheme, lossRule, efficiency, linkUtilization } = worst;
  const tone = toneOfShare(efficiency);
  const isStuck = efficiency < STUCK_SHARE && linkUtilization >= BUSY_SHARE;
  return verdictMarkup({
    tone,
    title: TRANSFER_TITLES[isStuck ? 'livelock' : tone],
    text:
      `With ${op.toUpperCase()} and ${scheme}, packets occupy ${percent(linkUtilization)} of the link, and ` +
      `${percent(efficiency)} of them complete messages. The switch drops ${lossRule}.`,
  });
}

export const livelockSection: SectionReader = (document) => {
  const parsed = documentSchema.safeParse(document);
  if (!parsed.success) return undefined;
  const { runs } = parsed.data;
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
      verdictOf(runs),
      colorLegend(BARS),
      barRows(
        runs.map((run) => ({
          label: `${run.op.toUpperCase()} ${run.scheme}`,
          bars: BARS.map(({ color, value, text }) => ({
            value: value(run),
            max: Math.max(...runs.map(value), color === GOODPUT ? 0 : 1),
            color,
            text: text(value(run)),
          })),
        })),
      ),
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
