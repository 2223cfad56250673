import { expect, test } from 'vitest';
import { ConnectionWatch } from '../../../src/storage-rpc/link/connection-watch.js';

/** A clock that is set by hand; what it calls may be called late. */
function watchBy() {
  const calls: string[] = [];
  let nowNs = 0;
  let due: { readonly timeNs: number; readonly action: () => void } | undefined;
  const watch = new ConnectionWatch({
    clock: {
      nowNs: () => nowNs,
      wakeAt: (timeNs, action) => {
        due = { timeNs, action };
        return () => {
          due = undefined;
        };
      },
    },
    idleNs: 1e9,
    silenceNs: 3e9,
    look: () => {
      calls.push('look');
      return false;
    },
    ask: () => calls.push('ask'),
    onSilent: () => calls.push('silent'),
  });
  /** Lets the watch look, `lateNs` after it wanted to. */
  const wake = (lateNs = 0) => {
    const { timeNs, action } = due!;
    nowNs = timeNs + lateNs;
    action();
    return calls.splice(0);
  };
  return { watch, wake };
}

test('a silent peer is asked once, and given up', () => {
  const { wake } = watchBy();
  expect([wake(), wake(), wake()]).toEqual([['look', 'ask'], ['look'], ['look', 'silent']]);
});

test('a process that was stopped judges nobody before it has listened again', () => {
  const { wake, watch } = watchBy();
  expect(wake(60e9)).toEqual([]);
  watch.onHeard();
  expect(wake()).toEqual(['look', 'ask']);
});
