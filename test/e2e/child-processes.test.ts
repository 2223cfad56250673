import { describe, expect, it } from 'vitest';
import { documentOf } from '../support/documents.js';
import { eventually } from '../support/eventually.js';
import { childrenOf, isAlive, isBuilt, isLinux, Program } from './executable.js';

/** A long run, stopped in its midst. */
async function startLivelock(): Promise<{ livelock: Program; children: number[] }> {
  const livelock = Program.rocev2('livelock', '--json', '--ops', 'write', '--seconds', '60');
  const pid = livelock.process.pid!;
  await eventually(() => childrenOf(pid).length === 3);
  return { livelock, children: childrenOf(pid) };
}

describe.skipIf(!isBuilt || !isLinux)('the processes of a command', () => {
  it.each([0, 1, 2])('the death of child %i ends the command, which names it', async (index) => {
    const { livelock, children } = await startLivelock();
    process.kill(children[index], 'SIGKILL');
    expect(await livelock.ended()).toBe(1);
    expect(livelock.stderr).toMatch(
      /^rocev2: the process of (the switch|endpoint a|endpoint b) was ended by SIGKILL\n$/,
    );
    expect(children.filter(isAlive)).toEqual([]);
  });

  it.each([
    ['SIGKILL', 'SIGKILL'],
    ['SIGTERM', 130],
  ] as const)('%s of the command leaves none behind', async (signal, end) => {
    const { livelock, children } = await startLivelock();
    livelock.kill(signal);
    expect(await livelock.ended()).toBe(end);
    await eventually(() => !children.some(isAlive));
  });

  it('Ctrl-C ends all of them and prints the runs made so far', async () => {
    const { livelock, children } = await startLivelock();
    for (const pid of [livelock.process.pid!, ...children]) process.kill(pid, 'SIGINT'); // As a terminal does.
    expect(await livelock.ended()).toBe(130);
    expect(documentOf('livelock', livelock.stdout)).toMatchObject({ runs: [], references: [] });
    expect(livelock.stderr).toContain('interrupted');
    expect(children.filter(isAlive)).toEqual([]);
  });
});

describe.skipIf(!isBuilt)('a child process', () => {
  it('that crashes is named with the end of its stderr', async () => {
    const parent = Program.fixture('crashing-parent.mjs');
    expect(await parent.ended()).toBe(0);
    expect(JSON.parse(parent.stdout)).toEqual({
      call: expect.stringMatching(
        /^the process of the crasher ended with exit code 1; the end of its stderr:\n(.|\n)*Error: oh no/,
      ),
      after: expect.stringContaining('the crasher ended with exit code 1'),
    });
  });

  it('refuses calls it does not know and arguments that do not fit, and lives on', async () => {
    const parent = Program.fixture('wrong-calls.mjs');
    expect(await parent.ended(), parent.stderr).toBe(0);
    expect(JSON.parse(parent.stdout)).toEqual({
      unknown: 'the switch: there is no method explode',
      inherited: 'the switch: there is no method toString',
      misfit: 'the switch: open: ports must be a list',
      alive: { a: expect.stringMatching(/^127\.0\.0\.1:\d+$/), b: expect.stringMatching(/^127\.0\.0\.1:\d+$/) },
    });
  });

  it('says so when it is started by hand', async () => {
    const child = new Program('build/packages/lab/src/live/switch-process.js', []);
    expect(await child.ended()).toBe(2);
    expect(child.stderr).toContain('started by it');
  });
});
