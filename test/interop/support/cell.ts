/** One cell of the interop matrix: a test, and what stands for it in the table that the suite prints at its end. */

import { test } from 'vitest';
import { chosenRound, isTurnOf, joinGroup, ROUNDS } from './rounds.js';

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

const round = chosenRound();

/** Registers the cell as a test, under its own facts as name; a round that is not its own skips it. */
export function cell(facts: Cell, run: () => Promise<void>, options: { readonly retry?: number } = {}): void {
  const { tool, role, family, mtu, what } = facts;
  const name = [
    `${tool}, ${role}`,
    ...(family === undefined ? [] : [`IPv${family}`]),
    ...(mtu === undefined ? [] : [`path MTU ${mtu}`]),
    ...(what === undefined ? [] : [what]),
  ].join(', ');
  const place = joinGroup(facts);
  test(name, options, async ({ task, skip }) => {
    task.meta.cell = facts;
    if (round !== undefined && !isTurnOf(facts, place, round)) skip(`not in round ${round + 1} of ${ROUNDS}`);
    await run();
  });
}
