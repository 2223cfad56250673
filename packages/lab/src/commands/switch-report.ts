import { type Column, LiveLine, leftAligned, type Output, rightAligned } from '@rocev2/command';
import { formatRate } from 'rocev2/internal/core';
import { timeoutMs } from 'rocev2/internal/driver';
import type { FaultPlan } from 'rocev2/internal/faults';
import type { LiveSwitchPortCounters } from '../live/linked-switch.js';
import type { SwitchSnapshot } from '../switch/switch-snapshot.js';

/** A fault rule. */
export interface RuleHits {
  /** The rule as it was written. */
  readonly rule: string;
  /** How often the rule applied. */
  readonly hits: number;
}

const DISPLAY_INTERVAL_MS = 1000;

interface Counted {
  readonly counters: Readonly<Record<string, LiveSwitchPortCounters>>;
}

export async function untilDone(durationNs: number | undefined, output: Output, live: Counted): Promise<void> {
  const line = new LiveLine(output.io);
  let previous = totalsOf(live);
  const display = setInterval(() => {
    const now = totalsOf(live);
    const seconds = DISPLAY_INTERVAL_MS / 1000;
    const rate = formatRate(((now.bytes - previous.bytes) * 8) / seconds);
    const frames = `${now.packets} frames, ${now.packets - previous.packets} a second, ${rate}`;
    const marked = now.marked > 0 ? `, ${now.marked} marked` : '';
    const pauses = now.pauses > 0 ? `, ${now.pauses} pause frames` : '';
    line.update(`${frames}, ${now.dropped} dropped${marked}${pauses}`);
    previous = now;
  }, DISPLAY_INTERVAL_MS);
  const { interrupted } = output.io;
  await new Promise<void>((resolve) => {
    const timer = durationNs === undefined ? undefined : setTimeout(resolve, timeoutMs(durationNs));
    const stop = () => {
      clearTimeout(timer);
      resolve();
    };
    if (interrupted.aborted) stop();
    else interrupted.addEventListener('abort', stop, { once: true });
  });
  clearInterval(display);
  line.clear();
}

function totalsOf(live: Counted) {
  const all = Object.values(live.counters);
  return {
    packets: all.reduce((sum, port) => sum + port.rx_packets, 0),
    bytes: all.reduce((sum, port) => sum + port.rx_bytes, 0),
    dropped: all.reduce((sum, port) => sum + droppedOf(port), 0),
    marked: all.reduce((sum, port) => sum + port.tx_ecn_marked, 0),
    pauses: all.reduce((sum, port) => sum + port.tx_pfc_packets, 0),
  };
}

function droppedOf(counters: LiveSwitchPortCounters): number {
  return Object.entries(counters).reduce((sum, [name, n]) => sum + (name.startsWith('tx_dropped_') ? n : 0), 0);
}

interface SwitchFigures {
  readonly names: readonly string[];
  readonly counters: Counted['counters'];
  readonly snapshot: SwitchSnapshot;
  readonly rules: FaultPlan['hits'];
}

/** Prints what was counted at the ports, and how often each rule matched. */
export function printSwitchReport(output: Output, { names, counters, snapshot, rules }: SwitchFigures): void {
  const always = new Set(['rx_packets', 'rx_bytes', 'tx_packets', 'tx_bytes']);
  const counted = Object.keys(counters[names[0]]) as Array<keyof LiveSwitchPortCounters>;
  const shown = counted.filter((name) => always.has(name) || names.some((port) => counters[port][name] > 0));
  const columns: Column[] = [...leftAligned('Counter'), ...rightAligned(...names)];
  const longestQueues = names.map((name) => Math.max(...snapshot.ports[name].egress.map(({ bytesMax }) => bytesMax)));
  output.table(columns, [
    ...shown.map((name) => [name, ...names.map((port) => counters[port][name])]),
    ['queue_bytes_max', ...longestQueues],
  ]);
  if (rules.length === 0) return;
  output.line();
  output.table(
    [...leftAligned('Rule'), ...rightAligned('Hits')],
    rules.map(({ rule, hits }) => [rule, hits]),
  );
}
