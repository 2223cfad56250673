/** The page of `rocev2 kv demo --html`. */

import { escapeXml, htmlPage, htmlTable, renderLineChart } from '@rocev2/command';
import { NS_PER_MS, NS_PER_S } from 'rocev2/internal/core';
import { isBusy, type KvDemoReader, stepSeconds, type Turns } from './result.js';

const TITLE = 'GETs while the owner computes';

/** HTML that stands alone. `titles` and `rows` are the table of the terminal. */
export function demoPage(
  readers: readonly KvDemoReader[],
  turns: Turns,
  { titles, rows, origin }: { titles: readonly string[]; rows: ReadonlyArray<readonly string[]>; origin: string },
): string {
  const x = stepSeconds(readers[0].worstNs.length);
  const busy = x.map((seconds) => (isBusy(turns.startNs + seconds * NS_PER_S, turns) ? 1 : 0));
  const chart = renderLineChart({
    title: TITLE,
    subtitle: `The slowest GET of each tenth of a second. The owner computes ${turns.busyNs / NS_PER_S} s of every ${(turns.idleNs + turns.busyNs) / NS_PER_S} s without a break.`,
    xLabel: 'seconds',
    x,
    panels: [
      {
        yLabel: 'GET, ms',
        logFrom: 0.01,
        series: readers.map(({ name, worstNs }) => ({ name, values: lastKnown(worstNs).map((ns) => ns / NS_PER_MS) })),
      },
      { yLabel: 'the owner computes', series: [{ name: 'the owner', values: busy }] },
    ],
  });
  return htmlPage(TITLE, [chart, htmlTable(titles, rows), `<p class="origin">${escapeXml(origin)}</p>`]);
}

/** Where a reader asked nothing, because its machine was busy, its line goes on as it was. */
function lastKnown(values: readonly number[]): number[] {
  let last = values.find((value) => value > 0) ?? 0;
  return values.map((value) => {
    if (value > 0) last = value;
    return last;
  });
}
