import { describe, expect, it } from 'vitest';
import type { WindowResult } from '../../packages/cli/src/window/experiment.js';
import { documentOf } from '../support/documents.js';
import { isBuilt, Program } from './executable.js';

async function runOf(...args: string[]): Promise<WindowResult> {
  const window = Program.rocev2('window', '--json', '--block', '64KiB', '--total', '16MiB', ...args);
  expect(await window.ended(), window.stderr).toBe(0);
  return documentOf('window', window.stdout) as unknown as WindowResult;
}

describe.skipIf(!isBuilt)('rocev2 window', () => {
  it('NoDelay sends one control message a block', async () => {
    expect(await runOf('--policy', 'nodelay')).toMatchObject({
      policy: 'nodelay',
      blocks: 16,
      blockBytes: 65_536,
      totalBytes: 16_777_216,
      controlMessages: 256,
      verified: true,
    });
  });

  it('the baseline sends two', async () => {
    expect(await runOf('--policy', 'baseline')).toMatchObject({
      controlMessages: 512,
      windowStalls: 0,
      verified: true,
    });
  });

  it('Nagle sends far fewer', async () => {
    const result = await runOf('--policy', 'nagle', '--mas', '8', '--mat', '1s');
    expect(result).toMatchObject({ verified: true });
    expect(result.controlMessages).toBe(32);
  });

  it('a pool that is too small grows', async () => {
    const result = await runOf('--policy', 'nodelay', '--blocks', '2', '--grow-to', '8');
    expect(result).toMatchObject({ blocks: 8, verified: true });
  });

  it('says what failed at the server once it had its client', async () => {
    const window = Program.rocev2('window', '--blocks', '64', '--block', '1GiB', '--total', '1GiB');
    expect(await window.ended()).toBe(2);
    expect(window.stderr).toMatch(/server: a region of 68719476736 bytes is not possible/);
    expect(window.stderr).not.toMatch(/control connection|^ +at /m);
  });

  it.each([
    [['--policy', 'nagle', '--mas', '17'], /MAS is 17 in a pool of 16/],
    [['--blocks', '8', '--grow-to', '4'], /begins with 8 blocks/],
    [['--policy', 'baseline', '--grow-to', '32'], /no window/],
  ])('%j is refused with a reason', async (args, reason) => {
    const window = Program.rocev2('window', ...args);
    expect(await window.ended()).not.toBe(0);
    expect(window.stderr).toMatch(reason);
  });
});
