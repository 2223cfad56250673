import type { GroupKey } from './group-table.js';
import { Histogram } from './histogram.js';
import { STAGES } from './stages.js';
import { addTotals, type ConnectionTotals } from './totals.js';
import type { TelemetryWindow } from './window-history.js';

export interface MergedGroup extends GroupKey {
  readonly stages: readonly Histogram[];
}

interface MergedWindows {
  readonly startNs: number;
  readonly endNs: number;
  readonly groups: readonly MergedGroup[];
  readonly connections: ReadonlyMap<string, ConnectionTotals>;
  readonly loopDelay: Histogram;
}

export function mergeWindows(windows: readonly TelemetryWindow[]): MergedWindows {
  const groups = new Map<string, MergedGroup>();
  const connections = new Map<string, ConnectionTotals>();
  const loopDelay = new Histogram();
  for (const window of windows) {
    for (const { conn, op, status, stages } of window.groups) {
      const text = `${conn}\n${op}\n${status}`;
      let merged = groups.get(text);
      if (merged === undefined) {
        merged = { conn, op, status, stages: STAGES.map(() => new Histogram()) };
        groups.set(text, merged);
      }
      stages.forEach((stage, i) => {
        merged.stages[i].add(stage);
      });
    }
    for (const [name, totals] of window.connections) {
      const before = connections.get(name);
      connections.set(name, before === undefined ? totals : addTotals(before, totals, 1));
    }
    loopDelay.add(window.loopDelay);
  }
  return {
    startNs: windows[0].startNs,
    endNs: windows[windows.length - 1].endNs,
    groups: [...groups.values()],
    connections,
    loopDelay,
  };
}
