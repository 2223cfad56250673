/**
 * A process that stands still, for a collection of garbage, a debugger or a suspended machine, keeps its connections at the library's defaults; one that
 * has died is noticed at once, by its kernel. Traffic goes both ways, and all of it is checked. Longer standstills: test/soak.
 */

import { describe, expect, it } from 'vitest';
import { isBuilt } from './executable.js';
import { end, goesOn, otherOf, standstill, talking } from './talking.js';

describe.skipIf(!isBuilt)('a process that stands still', () => {
  it.concurrent.each([
    [1, 'server', 'inline'],
    [1, 'client', 'worker'],
  ] as const)('for %i s, the %s, %s: the connection goes on', async (seconds, side, engine) => {
    const ends = await talking({ engine });
    await standstill(ends[side], seconds);
    await goesOn(ends);
    end(ends);
  });

  it.concurrent('twin: for 1 s under the timers of the standard: the connection fails', async () => {
    const ends = await talking({ engine: 'inline', options: { timeout: 14, retryCnt: 7 } });
    ends.server.kill('SIGSTOP');
    await ends.client.writes('stdout', /"sending":"ERR_ROCE_COMPLETION".*the peer does not answer/);
    end(ends);
  });
});

describe.skipIf(!isBuilt)('a process that has died', () => {
  it.concurrent.each([
    ['server', 'inline'],
    ['client', 'worker'],
  ] as const)('the %s, %s: the other side is told at once', async (side, engine) => {
    const ends = await talking({ engine });
    const survivor = ends[otherOf(side)];
    const killed = performance.now();
    ends[side].kill('SIGKILL');
    await survivor.writes('stdout', /"receiving":"ERR_ROCE_CLOSED".*the peer has closed the connection/);
    const receiverTold = performance.now() - killed;
    await survivor.writes('stdout', /"sending":"ERR_ROCE_COMPLETION".*the peer process is gone/);
    const senderTold = performance.now() - killed;
    expect(await survivor.ended()).toBe(0);
    expect(receiverTold).toBeLessThan(3000);
    expect(senderTold).toBeLessThan(3000);
  });
});
