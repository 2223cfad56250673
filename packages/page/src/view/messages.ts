/** Messages between the page and the worker that simulates. */

import type { PacketColumns, Values } from '../scenes/index.js';

/** Begins the runs of a scene, and gives up those before. */
export interface RunRequest {
  readonly request: number;
  readonly scene: string;
  readonly values: Values;
  readonly seed: number;
}

export type RunReply = { readonly request: number; readonly variant: string } & (
  | { readonly kind: 'packets'; readonly packets: PacketColumns }
  | {
      readonly kind: 'progress';
      readonly done: number;
      readonly timesNs: readonly number[];
      readonly samples: ReadonlyArray<readonly number[]>;
    }
  | { readonly kind: 'result'; readonly outcome: FinishedVariant; readonly packets: PacketColumns }
  | { readonly kind: 'failed'; readonly message: string }
);

type FinishedVariant = import('../scenes/index.js').Outcome;
