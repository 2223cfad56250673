/** A thread that computes fragments in TypeScript, off the event loop of a node. */

import { parentPort } from 'node:worker_threads';
import { partsOf, portableCombine } from '../coding/combiner.js';

export interface CodingRequest {
  readonly id: number;
  readonly rows: readonly Uint8Array[];
  readonly sources: Uint8Array<ArrayBuffer>;
}

export interface CodingAnswer {
  readonly id: number;
  readonly sums: Uint8Array<ArrayBuffer>;
}

parentPort?.on('message', ({ id, rows, sources }: CodingRequest) => {
  const count = rows[0].length;
  const sums = new Uint8Array((sources.length / count) * rows.length);
  portableCombine(rows, partsOf(sources, count), partsOf(sums, rows.length));
  parentPort!.postMessage({ id, sums } satisfies CodingAnswer, [sums.buffer]);
});
