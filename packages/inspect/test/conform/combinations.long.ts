/** Our own NIC passes every case in all pairs of path MTU, address family, and way to the target; more schemes of recovery, and more seeds of a lossy wire. */

import { expect, it } from 'vitest';
import { casesOfRound } from '../../../../test/support/rounds.js';
import { CASES } from '../../src/conform/cases.js';
import { pairwise } from '../../src/conform/pairwise.js';
import { NONSTANDARD_SCHEMES, SCHEME_DEVIATIONS } from './nonstandard-schemes.js';
import { failed, runSimulated } from './simulated-target.js';
import { expectSureUnderLoss } from './sure-under-loss.js';

const COMBINATIONS = pairwise({ mtu: [256, 512, 1024, 2048, 4096], family: [4, 6], via: ['cm', 'agent'] } as const);

it.each(casesOfRound(COMBINATIONS.map((combination, seed) => ({ ...combination, seed }))))(
  'path MTU $mtu over IPv$family by $via',
  async (run) => {
    const { results } = await runSimulated(run);
    const open = results
      .filter(({ verdict }) => verdict !== 'passed')
      .map(({ name, verdict }) => `${name}: ${verdict}`);
    const lacking = CASES.filter(({ needs = [], connect }) =>
      run.via === 'cm' ? connect?.(256).order?.timeout === 0 : needs.includes('RDMA CM') || needs.includes('window'),
    );
    expect(open).toEqual(lacking.map(({ name }) => `${name}: not supported`));
  },
);

it.each(NONSTANDARD_SCHEMES)('%s deviates in what makes it another scheme, and nowhere else', async (name) => {
  for (const family of [4, 6] as const) {
    expect(failed(await runSimulated({ family, recovery: { name } })).sort()).toEqual(
      [...SCHEME_DEVIATIONS[name]].sort(),
    );
  }
});

it.each(casesOfRound([2, 3, 4, 5]))('fails nothing when one packet in 50 is lost (seed %i)', expectSureUnderLoss);
