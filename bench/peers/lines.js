// @ts-check
/** JSON lines between the parent and its children: one object a line, read in order by whoever asks. */

import { createInterface } from 'node:readline';

/**
 * @param {import('node:stream').Readable} input
 * @param {import('node:stream').Writable} output
 */
export function jsonLines(input, output) {
  /** @type {any[]} */
  const arrived = [];
  /** @type {Array<{resolve: (line: any) => void, reject: (error: Error) => void}>} */
  const waiting = [];
  let ended = false;
  const lines = createInterface({ input });
  lines.on('line', (text) => {
    const line = JSON.parse(text);
    const reader = waiting.shift();
    if (reader === undefined) arrived.push(line);
    else reader.resolve(line);
  });
  lines.on('close', () => {
    ended = true;
    for (const { reject } of waiting.splice(0)) reject(new Error('the other side is gone'));
  });
  return {
    /** @returns {Promise<any>} */
    next: () => {
      if (arrived.length > 0) return Promise.resolve(arrived.shift());
      if (ended) return Promise.reject(new Error('the other side is gone'));
      return new Promise((resolve, reject) => waiting.push({ resolve, reject }));
    },
    say: (/** @type {object} */ line) => output.write(`${JSON.stringify(line)}\n`),
    close: () => lines.close(),
  };
}
