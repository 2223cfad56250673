/** Messages between the page and the worker that simulates and reads captures. */

import type { CaptureReport, Outcome, PacketColumns, Values } from '../scenes/index.js';

/** Begins the runs of a scene, and gives up those before. */
export interface RunRequest {
  readonly kind: 'run';
  readonly request: number;
  readonly scene: string;
  readonly values: Values;
  readonly seed: number;
}

/** Reads a capture, or the example, and gives up runs before. */
export interface FileRequest {
  readonly kind: 'file';
  readonly request: number;
  readonly seed: number;
  readonly file: Blob | undefined;
}

export type RunReply = { readonly request: number; readonly variant: string } & (
  | { readonly kind: 'packets'; readonly packets: PacketColumns }
  | {
      readonly kind: 'progress';
      readonly done: number;
      readonly timesNs: readonly number[];
      readonly samples: ReadonlyArray<readonly number[]>;
    }
  | { readonly kind: 'result'; readonly outcome: Outcome; readonly packets: PacketColumns }
  | { readonly kind: 'failed'; readonly message: string }
);

export type FileReply = { readonly request: number } & (
  | { readonly kind: 'reading'; readonly done: number }
  | { readonly kind: 'report'; readonly report: CaptureReport }
  | { readonly kind: 'failed'; readonly message: string }
);
