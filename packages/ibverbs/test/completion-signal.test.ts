/** The NIC counts completions for threads that poll, and answers each request for an event once. */

import { describe, expect, it } from 'vitest';
import { libC } from '../../../src/dgram-ext/libc.js';
import { Segment } from '../../../src/port/shm/segment.js';
import { CompletionSignal, takeRequest } from '../src/completion-signal.js';

const lib = libC();

describe.skipIf(typeof lib === 'string')('signals of completions (needs koffi on Linux)', () => {
  it('are counted, whether or not a thread sleeps', () => {
    const segment = Segment.create(lib as Exclude<typeof lib, string>, 4096);
    try {
      const words = new Int32Array(segment.memory, 0, 16);
      const signal = new CompletionSignal(segment.memory);
      signal.raise();
      words[9] = 1;
      signal.raise();
      expect(words[8]).toBe(2);
    } finally {
      segment.close();
    }
  });

  it('a request for an event is taken once', () => {
    const memory = new SharedArrayBuffer(64);
    expect(takeRequest(memory)).toBe(false);
    new Int32Array(memory)[10] = 1;
    expect([takeRequest(memory), takeRequest(memory)]).toEqual([true, false]);
  });
});
