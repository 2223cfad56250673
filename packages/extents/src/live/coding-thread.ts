/** A thread that makes sums of fragments in TypeScript, so that the event loop of a node goes on meanwhile. */

import { parentPort } from 'node:worker_threads';
import { partsOf, portableCombine } from '../coding/combiner.js';

/** What the thread is asked: sums of sources that follow each other in one array. */
export interface CodingRequest {
  /** The answer has the same. */
  readonly id: number;
  /** A row of factors for each sum. */
  readonly rows: readonly Uint8Array[];
  /** All sources, one after another. */
  readonly sources: Uint8Array<ArrayBuffer>;
}

/** What it answers. */
export interface CodingAnswer {
  /** Of the request. */
  readonly id: number;
  /** All sums, one after another. */
  readonly sums: Uint8Array<ArrayBuffer>;
}

parentPort?.on('message', ({ id, rows, sources }: CodingRequest) => {
  const count = rows[0].length;
  const sums = new Uint8Array((sources.length / count) * rows.length);
  portableCombine(rows, partsOf(sources, count), partsOf(sums, rows.length));
  parentPort!.postMessage({ id, sums } satisfies CodingAnswer, [sums.buffer]);
});
