/**
 * All histories of at most five steps, without and with journals, and some with codes, with every earlier state of every
 * folder and of the owner, or a fifth of the histories with ROUND; pairs, starting orders and copies of folders that are
 * started elsewhere by seed. TIME_TRAVEL_PAIRS=100 runs that many pairs, and copies, of each history.
 */

import process from 'node:process';
import { describe, expect, it } from 'vitest';
import { randomInt, SeededRandom } from '../../../src/core/random.js';
import { ROUND, ROUNDS } from '../../../test/support/rounds.js';
import { acceptedCopiesOf, copiesOf, replaceByCopy, startCopy } from './folder-copies.js';
import { type History, histories, replacementsOf, runHistory, type Step, travel } from './time-travel.js';

const CHUNK = 20;
const PAIRS_A_HISTORY = Number(process.env['TIME_TRAVEL_PAIRS'] ?? 12);

const isInRound = (_: unknown, k: number) => ROUND === undefined || k % ROUNDS === ROUND;
const plain = histories(5)
  .filter(isInRound)
  .filter((steps) => !steps.includes('code'));
const CODED: Step[] = ['open', 'append', 'ack', 'seal', 'code'];
const CODED_HISTORIES: Step[][] = [CODED, [...CODED, 'copy'], [...CODED, 'open'], [...CODED, 'open', 'trim']];
const coding = CODED_HISTORIES.filter(isInRound);

function chunks(some: readonly Step[][]) {
  return Array.from({ length: Math.ceil(some.length / CHUNK) }, (_, k) => ({
    k,
    some: some.slice(k * CHUNK, (k + 1) * CHUNK),
  }));
}

async function replaceOne(history: History): Promise<void> {
  for (const one of replacementsOf(history))
    expect(await travel(history, [one]), `${history.steps} ${JSON.stringify(one)}`).toEqual([]);
}

async function replaceTwo(history: History, seed: number): Promise<void> {
  const random = new SeededRandom(seed).stream('pairs');
  const states = replacementsOf(history);
  for (let pair = 0; pair < PAIRS_A_HISTORY; pair++) {
    const first = states[randomInt(random, 0, states.length - 1)];
    const others = states.filter(({ folder }) => folder !== first?.folder);
    if (first === undefined || others.length === 0) continue;
    const replaced = [first, others[randomInt(random, 0, others.length - 1)]];
    const order = history.moments[0].disks.map((_, k) => k).sort(() => randomInt(random, 0, 1) - 0.5);
    const problems = await travel(history, replaced, order);
    expect(problems, `${history.steps} ${JSON.stringify({ replaced, order })}`).toEqual([]);
  }
}

async function startCopies(history: History, seed: number): Promise<void> {
  const random = new SeededRandom(seed).stream('copies');
  const copies = copiesOf(history);
  for (let k = 0; k < PAIRS_A_HISTORY; k++) {
    const copy = copies[randomInt(random, 0, copies.length - 1)];
    expect(await startCopy(history, copy), `${history.steps} ${JSON.stringify(copy)}`).toEqual([]);
  }
}

async function startAsNode(history: History, seed: number): Promise<void> {
  const random = new SeededRandom(seed).stream('accepted');
  const copies = acceptedCopiesOf(history);
  for (let k = 0; k < PAIRS_A_HISTORY; k++) {
    const copy = copies[randomInt(random, 0, copies.length - 1)];
    expect((await replaceByCopy(history, copy)).problems, `${history.steps} ${JSON.stringify(copy)}`).toEqual([]);
  }
}

describe('folders that come back as they once were', () => {
  it.each(chunks(plain))('one of them, histories $k', async ({ some }) => {
    for (const steps of some) await replaceOne(await runHistory(steps));
  });

  it.each(chunks(plain))('one of them with journals, histories $k', async ({ some }) => {
    for (const steps of some) await replaceOne(await runHistory(steps, true));
  });

  it.each(chunks(coding))('one of them with codes, histories $k', async ({ some }) => {
    for (const steps of some) await replaceOne(await runHistory(steps));
  });

  it.each(chunks([...plain, ...coding]))('two of them in any starting order, histories $k', async ({ k, some }) => {
    for (const [n, steps] of some.entries()) await replaceTwo(await runHistory(steps), 1 + k * CHUNK + n);
  });

  it.each(chunks(plain))('a copy is started elsewhere, histories $k', async ({ k, some }) => {
    for (const [n, steps] of some.entries()) await startCopies(await runHistory(steps, true), 1 + k * CHUNK + n);
  });

  it.each(chunks(plain))('a copy is started as its node, histories $k', async ({ k, some }) => {
    for (const [n, steps] of some.entries()) await startAsNode(await runHistory(steps, n % 2 === 0), 1 + k * CHUNK + n);
  });
});
