/** One cell of the interop matrix: a test, and what stands for it in the table that the suite prints at its end. */

import { test } from 'vitest';
import { isTurn, ROUND, ROUNDS } from '../../support/rounds.js';

export interface Cell {
  /** The other side: `ib_write_bw -R`. */
  readonly tool: string;
  /** Ours. */
  readonly role: 'client' | 'server' | 'both';
  readonly family?: 4 | 6;
  /** Path MTU in bytes. */
  readonly mtu?: number;
  /** What else tells it from its neighbours. */
  readonly what?: string;
}

declare module 'vitest' {
  interface TaskMeta {
    cell?: Cell;
  }
}

/** By group of cells that differ in parameters alone: how many there are. */
const groupSizes = new Map<string, number>();

/** The place of a new cell in its group; from 0. */
function joinGroup(group: string): number {
  const size = groupSizes.get(group) ?? 0;
  groupSizes.set(group, size + 1);
  return size;
}

/** What perftest says, and ends, when the processor time that it was given was too uneven to measure its clock by: that is no verdict about anybody's packets. */
const CLOCK_UNMEASURED = { count: 2, condition: /Can't produce a report/ } as const;

/** How a cell is run. */
export interface CellOptions {
  /** Further attempts, where the peer is known to fail now and then, or where an error says so. Default: where perftest could not measure its clock. */
  readonly retry?: number | { readonly count: number; readonly condition: RegExp };
  /** Cells of one group take turns in the rounds. Default: those with the same peer and the same `what`. */
  readonly group?: string | undefined;
}

/** Registers the cell as a test, under its own facts as name; a round that is not its own skips it. */
export function cell(facts: Cell, run: () => Promise<void>, { group: given, ...options }: CellOptions = {}): void {
  const { tool, role, family, mtu, what } = facts;
  const name = [
    `${tool}, ${role}`,
    ...(family === undefined ? [] : [`IPv${family}`]),
    ...(mtu === undefined ? [] : [`path MTU ${mtu}`]),
    ...(what === undefined ? [] : [what]),
  ].join(', ');
  const group = given ?? `${tool}, ${what}`;
  const place = joinGroup(group);
  test(name, { retry: CLOCK_UNMEASURED, ...options }, async ({ task, skip }) => {
    task.meta.cell = facts;
    // All cells of the file are known by now.
    if (!isTurn(place, groupSizes.get(group)!)) skip(`not in round ${ROUND! + 1} of ${ROUNDS}`);
    await run();
  });
}
