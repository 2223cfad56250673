/**
 * A process that stands still for as long as the defaults bear, and for longer: then the failure says so, and a program that asks for more time
 * has it.
 */

import { describe, expect, it } from 'vitest';
import { isBuilt } from '../e2e/executable.js';
import { end, goesOn, otherOf, receivedBy, standstill, talking } from '../e2e/talking.js';
import { eventually } from '../support/eventually.js';

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
    expect(seconds).toBeLessThan(30); // On a busy machine.
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

describe.skipIf(!isBuilt)('a process that stands still', () => {
  it.concurrent.each([
    [5, 'client', 'inline'],
    [5, 'server', 'worker'],
    [10, 'server', 'inline'],
    [10, 'client', 'worker'],
  ] as const)('for %i s, the %s, %s: the connection goes on', async (seconds, side, engine) => {
    const ends = await talking({ engine });
    await standstill(ends[side], seconds);
    await goesOn(ends);
    end(ends);
  });

  it.concurrent.each(['inline', 'worker'] as const)(
    'by a blocked event loop for 10 s, %s: the connection goes on',
    async (engine) => {
      const ends = await talking({ engine, blockMs: 10_000 });
      const before = receivedBy(ends.server);
      ends.server.kill('SIGUSR2');
      await eventually(() => receivedBy(ends.server) > before + 20, { limitMs: 20_000 });
      await goesOn(ends);
      end(ends);
    },
  );
});
