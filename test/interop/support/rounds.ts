/**
 * Rounds: continuous integration runs a third of the cells that differ in parameters alone, another third the next time.
 *
 * Cells with the same peer and the same `what` are a group; they differ in role, address family and MTU. Each round runs at least one cell
 * of each group, so every kind of proof is in every round, and three rounds run everything. `INTEROP_ROUND=2 npm run test:interop` runs
 * one round again; without the variable, all cells run.
 */

import process from 'node:process';
import type { Cell } from './cell.js';

export const ROUNDS = 3;

const groupSizes = new Map<string, number>();

/** The place of a new cell in its group; from 0. */
export function joinGroup(cell: Cell): number {
  const size = groupSizes.get(groupOf(cell)) ?? 0;
  groupSizes.set(groupOf(cell), size + 1);
  return size;
}

/** The round, 0 to `ROUNDS` - 1, or undefined for all cells. Throws where `INTEROP_ROUND` is no round. */
export function chosenRound(): number | undefined {
  const text = process.env['INTEROP_ROUND'];
  if (text === undefined || text === 'all') return undefined;
  const round = Number(text);
  if (!Number.isInteger(round) || round < 1 || round > ROUNDS)
    throw new Error(`INTEROP_ROUND must be all or 1 to ${ROUNDS}, not ${text}`);
  return round - 1;
}

/** Whether the cell runs in the round. Call it once all cells of the file are known, that is, while tests run. */
export function isTurnOf(cell: Cell, place: number, round: number): boolean {
  const turns = Math.min(groupSizes.get(groupOf(cell)) ?? 1, ROUNDS);
  return place % turns === round % turns;
}

function groupOf({ tool, what }: Cell): string {
  return `${tool}, ${what}`;
}
