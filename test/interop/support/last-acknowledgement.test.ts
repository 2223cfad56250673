import { expect, test } from 'vitest';
import { expectBothDone, LAST_ACKNOWLEDGEMENT } from './last-acknowledgement.js';

const done = { exitCode: 0, stdout: '50 iters\n', stderr: '' };
const unacknowledged = { exitCode: 1, stdout: '', stderr: 'rocev2: transport retry counter exceeded\n' };
const wrong = { exitCode: 4, stdout: '', stderr: 'rocev2: invalid data in 1 of 50 messages\n' };

test('an end that lacks an acknowledgement alone is told from everything else, whichever it is', () => {
  expect(() => expectBothDone(done, done)).not.toThrow();
  expect(() => expectBothDone(unacknowledged, done)).toThrow(LAST_ACKNOWLEDGEMENT);
  expect(() => expectBothDone(done, unacknowledged)).toThrow(LAST_ACKNOWLEDGEMENT);
});

test('a message that did not arrive, and one that arrived with other bytes, are no lost acknowledgements', () => {
  for (const [ours, theirs] of [
    [unacknowledged, { ...done, exitCode: 1 }],
    [unacknowledged, unacknowledged],
    [unacknowledged, { ...done, exitCode: 124 }],
    [wrong, done],
    [done, wrong],
  ]) {
    expect(() => expectBothDone(ours, theirs)).toThrow('an end has failed');
    expect(() => expectBothDone(ours, theirs)).not.toThrow(LAST_ACKNOWLEDGEMENT);
  }
});
