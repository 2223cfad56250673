/** Runs the fixture that makes and closes connections, and judges what its process occupies. */

import { expect } from 'vitest';
import { Program } from './executable.js';

export interface Occupied {
  readonly rss: number;
  readonly heapUsed: number;
  readonly arrayBuffers: number;
  readonly descriptors: number;
}

interface Run {
  /** What the process occupied, from the end of the warm-up on. */
  readonly samples: readonly Occupied[];
  readonly done: Readonly<Record<string, number>>;
}

/** `terms`: engine, and seconds or connects. */
export async function comeAndGo(terms: object): Promise<Run> {
  const program = Program.fixture('coming-and-going.mjs', JSON.stringify(terms));
  const code = await program.ended();
  expect(program.stderr).toBe('');
  expect(code).toBe(0);
  const lines = program.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const { done } = lines.pop();
  return { samples: lines.map(({ occupied }) => occupied), done };
}

/** The least of a part of the samples: what is there after a collection. */
export function least(samples: readonly Occupied[], what: keyof Occupied): number {
  return Math.min(...samples.map((sample) => sample[what]));
}
