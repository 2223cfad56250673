/** Commands and servers wait for a manager that does not answer yet. */

import { RoceError } from 'rocev2/internal/core';
import { describe, expect, it } from 'vitest';
import { whenManaged } from '../src/commands/cluster.js';

const NOBODY = new RoceError('ERR_ROCE_CONNECT', 'no manager answers at 127.0.0.1:1');

function waiting(failures: readonly Error[]) {
  const warnings: string[] = [];
  const abort = new AbortController();
  const output = { io: { interrupted: abort.signal }, warn: (text: string) => void warnings.push(text) };
  let attempts = 0;
  const open = async () => {
    const failure = failures[attempts++];
    if (failure !== undefined) throw failure;
    return 'client';
  };
  return { warnings, abort, wait: (ns?: number) => whenManaged(open, output as never, ns) };
}

describe('a command that needs a manager', () => {
  it('says once that it waits, and continues when one answers', async () => {
    const { warnings, wait } = waiting([NOBODY, NOBODY]);
    expect(await wait()).toBe('client');
    expect(warnings).toEqual(['waiting for a manager: no manager answers at 127.0.0.1:1']);
  });

  it.each<[string, Error, number | undefined]>([
    ['its time is over', NOBODY, 0],
    ['the manager refuses', new RoceError('ERR_ROCE_REMOTE', 'another cluster'), undefined],
  ])('fails with the cause if %s', async (_name, failure, ns) => {
    const { warnings, wait } = waiting([failure]);
    await expect(wait(ns)).rejects.toBe(failure);
    expect(warnings).toEqual([]);
  });

  it('ends when it is interrupted', async () => {
    const { warnings, abort, wait } = waiting([NOBODY, NOBODY]);
    const ended = wait(60e9);
    await new Promise(setImmediate);
    abort.abort();
    await expect(ended).rejects.toBe(NOBODY);
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain('60 s at most');
  });
});
