/** packages/lab/docs/reproduced.md: its commands exist, it has the claims of the list, and rows that take little time hold. */

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { PAPERS } from '../../../../scripts/reproduced/claims.js';
import { pageOf, rowsOf, wordsOf } from '../../../../scripts/reproduced/page.js';
import { run } from '../../../cli/test/run-in-process.js';
import { FIGURES } from '../../src/commands/sim/figures/index.js';

const PAGE = readFileSync(new URL('../../docs/reproduced.md', import.meta.url), 'utf8');
const CLAIMS = PAPERS.flatMap(({ claims }) => claims);
const COMMANDS = [...new Set(CLAIMS.flatMap(({ commands }) => commands))];

describe('packages/lab/docs/reproduced.md', () => {
  it('is made of the claims and of what it says of their runs', () => {
    expect(pageOf(rowsOf(PAGE))).toBe(PAGE);
    expect(PAGE).not.toContain('| not run |');
  });

  it('gives a reason for each claim that is not reproduced or not tested', () => {
    const judged = rowsOf(PAGE);
    const silent = CLAIMS.filter(({ id, reason }) => judged.get(id)?.holds !== true && reason === undefined);
    expect(silent.map(({ id }) => id)).toEqual([]);
  });

  it('has each id once', () => {
    expect(new Set(CLAIMS.map(({ id }) => id)).size).toBe(CLAIMS.length);
  });

  it.each(COMMANDS)('%s is a command with a scenario or a figure', async (command) => {
    const [program, action, name, ...options] = wordsOf(command);
    expect(program).toBe('sim');
    if (action === 'figure') expect(FIGURES.map((figure) => figure.name)).toContain(name);
    else expect(await run(['sim', 'show', name, ...options])).toMatchObject({ exitCode: 0, stderr: '' });
  });

  it('an override of a field that does not exist is found (negative control)', async () => {
    const { exitCode } = await run(['sim', 'show', 'pfc-n2', '--set', 'switch.ecn.att=enqueue']);
    expect(exitCode).toBe(2);
  });

  it.each(CLAIMS.filter(({ isQuick }) => isQuick).map((claim) => [claim.id, claim] as const))(
    'row %s is as on the page',
    async (id, { commands, judge }) => {
      const documents = [];
      for (const command of commands) documents.push(JSON.parse((await run([...wordsOf(command), '--json'])).stdout));
      const { ours, holds } = judge!(...documents);
      expect(rowsOf(PAGE).get(id)).toEqual({ ours, holds });
    },
  );
});
