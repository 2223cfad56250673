/**
 * `@rocev2/page/scenes`: the scenes of the page without the page, which run wherever the engine runs.
 *
 * @module @rocev2/page/scenes
 */

import { DCQCN } from './dcqcn.js';
import { INCAST } from './incast.js';
import { LIVELOCK } from './livelock.js';
import { RECOVERY } from './recovery.js';
import type { Scene } from './scene.js';
import { SIGNALS } from './signals.js';
import { STORM } from './storm.js';

export { FROM_RECEIVER, LOST, NAK, type PacketColumns, REPEATED } from './packet-log.js';
export { runVariant, type VariantProgress, type VariantRun } from './run-variant.js';
export {
  completed,
  type Explanation,
  type Outcome,
  type Parameter,
  type PlottedSeries,
  type Scene,
  type Values,
  type Variant,
} from './scene.js';
export { LANGUAGES, type Language, TEXTS, type TextKey, textIn } from './texts.js';

/** In the order of the page. */
export const SCENES: readonly Scene[] = [LIVELOCK, RECOVERY, DCQCN, INCAST, STORM, SIGNALS];
