import { counted } from '@rocev2/command';
import { htmlTable, renderLineChart } from '@rocev2/command/plot';
import { formatNs, formatRate } from 'rocev2/internal/core';
import { z } from 'zod';
import type { SectionReader } from './section.js';

const maybe = z.number().nullable();
const numbers = z.array(z.number());

const documentSchema = z.looseObject({
  model: z.string(),
  flows: z.number(),
  delayNs: z.number(),
  fixedPoint: z.looseObject({ queueBytes: maybe, rateBps: maybe, markProbability: maybe, alpha: maybe }).nullable(),
  phaseMarginDegrees: z.object({ authors: maybe, exact: maybe }),
  criticalDelayNs: maybe,
  trace: z.object({ timeNs: numbers.min(2), queueBytes: numbers, rateBps: z.array(numbers) }),
});

const LINES_MAX = 10;

export const fluidSection: SectionReader = (document) => {
  const parsed = documentSchema.safeParse(document);
  if (!parsed.success) return undefined;
  const { model, flows, delayNs, fixedPoint, phaseMarginDegrees, criticalDelayNs, trace } = parsed.data;
  const title = `Fluid model ${model}: ${counted(flows, 'flow')}, delay ${formatNs(delayNs)}`;
  const shown = (value: number | null | undefined, format: (value: number) => string) =>
    value === null || value === undefined ? 'none' : format(value);
  const degrees = (value: number) => `${value.toFixed(1)} degrees`;
  const quantities = [
    {
      name: 'queue at rest',
      value: fixedPoint?.queueBytes,
      format: (bytes: number) => `${(bytes / 1000).toFixed(1)} KB`,
    },
    { name: 'rate of a flow at rest', value: fixedPoint?.rateBps, format: formatRate },
    {
      name: 'marking probability',
      value: fixedPoint?.markProbability,
      format: (p: number) => `${(p * 100).toPrecision(4)} %`,
    },
    { name: 'alpha', value: fixedPoint?.alpha, format: (alpha: number) => alpha.toFixed(4) },
    { name: 'phase margin, exact', value: phaseMarginDegrees.exact, format: degrees },
    { name: "phase margin, authors' linearisation", value: phaseMarginDegrees.authors, format: degrees },
    { name: 'critical delay', value: criticalDelayNs, format: formatNs },
  ];
  return {
    title,
    measures: quantities.flatMap(({ name, value, format }) =>
      value === null || value === undefined ? [] : [{ name, value, text: format(value) }],
    ),
    body: [
      renderLineChart({
        title: 'Queue and rates over time',
        subtitle: `phase margin ${shown(phaseMarginDegrees.exact, degrees)}`,
        xLabel: 'Time (ms)',
        x: trace.timeNs.map((ns) => ns / 1e6),
        panels: [
          {
            yLabel: 'Queue (KB)',
            series: [{ name: 'queue', values: trace.queueBytes.map((bytes) => bytes / 1000) }],
            logFrom: 1,
          },
          {
            yLabel: 'Rate (Gb/s)',
            series: distinctRates(trace.rateBps)
              .slice(0, LINES_MAX)
              .map(({ name, values }) => ({ name, values: values.map((rate) => rate / 1e9) })),
          },
        ],
      }),
      htmlTable(
        ['Quantity', 'Value'],
        quantities.map(({ name, value, format }) => [name, shown(value, format)]),
      ),
    ],
  };
};

/** Flows that start alike stay alike, so one line represents a group. */
function distinctRates(rates: readonly (readonly number[])[]): { name: string; values: readonly number[] }[] {
  const starts = rates.flatMap((values, i) =>
    i > 0 && values.every((value, at) => value === rates[i - 1][at]) ? [] : [i],
  );
  return starts.map((first, at) => {
    const last = (starts[at + 1] ?? rates.length) - 1;
    const name = first === last ? `flow ${first + 1}` : `each of flows ${first + 1} to ${last + 1}`;
    return { name, values: rates[first] };
  });
}
