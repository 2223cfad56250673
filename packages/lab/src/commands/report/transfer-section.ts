import { barRows, COLORS, htmlTable, verdictMarkup } from '@rocev2/command/plot';
import { formatBytes, formatNs, formatRate } from 'rocev2/internal/core';
import { z } from 'zod';
import type { SectionReader } from './section.js';

const documentSchema = z.looseObject({
  op: z.string(),
  sizeBytes: z.number(),
  iterations: z.number(),
  seconds: z.number(),
  goodputBps: z.number(),
  messagesPerSecond: z.number(),
  latencyNs: z.record(z.string(), z.number()).nullable(),
  verified: z.boolean(),
  recovery: z.string(),
  cc: z.string(),
  io: z.string(),
  engine: z.string(),
  counters: z.record(z.string(), z.number()),
});

export const transferSection: SectionReader = (document) => {
  const parsed = documentSchema.safeParse(document);
  if (!parsed.success) return undefined;
  const { op, sizeBytes, latencyNs, verified, ...result } = parsed.data;
  const { iterations, seconds, goodputBps, recovery, cc, io, engine, counters } = result;
  const title = `${op.toUpperCase()} of ${formatBytes(sizeBytes)}`;
  const latencies = Object.entries(latencyNs ?? {}).map(([name, value]) => ({
    label: name === 'p999' ? 'p99.9' : name,
    value,
  }));
  const { messagesPerSecond } = result;
  return {
    title,
    measures: [
      { name: 'goodput', value: goodputBps, text: formatRate(goodputBps) },
      { name: 'messages a second', value: messagesPerSecond, text: String(Math.round(messagesPerSecond)) },
      ...latencies.map(({ label, value }) => ({ name: `latency ${label}`, value, text: formatNs(value) })),
      ...Object.entries(counters).map(([name, value]) => ({ name, value, text: String(value) })),
    ],
    body: [
      verdictMarkup({
        tone: verified ? 'good' : 'bad',
        title: verified ? 'The data is verified' : 'The data is wrong',
        text: `${formatRate(goodputBps)}, ${Math.round(messagesPerSecond)} messages a second.`,
      }),
      htmlTable(
        ['Quantity', 'Value'],
        [
          ['goodput', formatRate(goodputBps)],
          ['messages', iterations],
          ['messages a second', Math.round(messagesPerSecond)],
          ['time', `${seconds.toFixed(2)} s`],
          ['recovery, rate control', `${recovery}, ${cc}`],
          ['engine, I/O', `${engine}, ${io}`],
          ...Object.entries(counters),
        ],
      ),
      latencies.length === 0 ? '' : `<h3>Latency</h3>${latencyBars(latencies)}`,
    ],
  };
};

function latencyBars(latencies: ReadonlyArray<{ readonly label: string; readonly value: number }>): string {
  const max = Math.max(...latencies.map(({ value }) => value));
  return barRows(
    latencies.map(({ label, value }) => ({ label, bars: [{ value, max, color: COLORS.data, text: formatNs(value) }] })),
  );
}
