import { expect, test } from 'vitest';
import { readFailureTeller } from '../../extents/src/commands/read-failures.js';

const FAILURE = new Error("EIO: 32768 bytes at 0 of 'vol' cannot be read: no node answers");
const WORDS = "32768 bytes at 0 of 'vol' cannot be read: no node answers";
const HINT = "('rocev2 extents status' shows which nodes are down)";

test('reads that fail one after another are told at once, and then every ten seconds, with their number', () => {
  const said: string[] = [];
  let seconds = 1000;
  const tell = readFailureTeller({ warn: (text) => said.push(text) }, () => seconds * 1e9);
  tell(FAILURE);
  expect(said).toEqual([`${WORDS} ${HINT}`]);
  for (let k = 0; k < 9; k++) {
    seconds++;
    tell(FAILURE);
  }
  expect(said).toHaveLength(1);
  seconds++;
  tell(FAILURE);
  tell(FAILURE);
  expect(said.slice(1)).toEqual([`${WORDS}; 9 reads before it also failed ${HINT}`]);
  seconds += 11;
  tell(FAILURE);
  expect(said.slice(2)).toEqual([`${WORDS}; 1 read before it also failed ${HINT}`]);
});
