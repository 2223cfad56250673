/** A process that stands still for longer than the defaults bear: the failure says so, and a program that asks for more time has it. */

import { describe, expect, it } from 'vitest';
import { isBuilt } from '../e2e/executable.js';
import { end, goesOn, otherOf, standstill, talking } from '../e2e/talking.js';

const STANDSTILL_S = 30;

describe.skipIf(!isBuilt)(`a process that stands still for ${STANDSTILL_S} s`, () => {
  it.concurrent.each([
    ['server', 'inline'],
    ['client', 'worker'],
  ] as const)('loses its connection after 17.2 s, with a cause: the %s, %s', async (side, engine) => {
    const ends = await talking({ engine });
    const survivor = ends[otherOf(side)];
    const stopped = performance.now();
    ends[side].kill('SIGSTOP');
    await survivor.writes('stdout', /"sending":"ERR_ROCE_COMPLETION".*the peer does not answer/);
    const seconds = (performance.now() - stopped) / 1000;
    expect(seconds).toBeGreaterThan(17);
    expect(seconds).toBeLessThan(20);
    end(ends);
  });

  it.concurrent.each([
    ['server', 'inline'],
    ['client', 'worker'],
  ] as const)('keeps it with `totalTimeout: 24`, 69 s: the %s, %s', async (side, engine) => {
    const ends = await talking({ engine, options: { totalTimeout: 24 } });
    await standstill(ends[side], STANDSTILL_S);
    await goesOn(ends);
    end(ends);
  });
});
