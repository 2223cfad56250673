/**
 * `@rocev2/page/scenes`: the scenes of the page without the page, which run wherever the engine runs.
 *
 * @module @rocev2/page/scenes
 */

import { CAPTURE } from './capture.js';
import { DCQCN } from './dcqcn.js';
import { INCAST } from './incast.js';
import { LIVELOCK } from './livelock.js';
import { OWN } from './own.js';
import { RECOVERY } from './recovery.js';
import type { Scene, SimulatedScene } from './scene.js';
import { SIGNALS } from './signals.js';
import { STORM } from './storm.js';
import { WINDOW } from './window.js';

export { type CaptureReport, exampleCapture, readCapture } from './capture-report.js';
export { FROM_RECEIVER, LOST, NAK, type PacketColumns, REPEATED } from './packet-log.js';
export { ruleTitleIn } from './rule-texts.js';
export { runVariant, type VariantProgress, type VariantRun } from './run-variant.js';
export {
  CODE_MAX,
  type Curve,
  completed,
  durationNsOf,
  type Explanation,
  type FileScene,
  type Outcome,
  type Parameter,
  type PlottedSeries,
  type Scene,
  type SimulatedScene,
  type Values,
  type Variant,
} from './scene.js';
export { sentenceIn } from './sentence-texts.js';
export { LANGUAGES, type Language, ladderTextsIn, nameIn, TEXTS, type TextKey, textIn } from './texts.js';

/** The scenes that simulate, in the order of the page. */
export const SIMULATED_SCENES: readonly SimulatedScene[] = [
  LIVELOCK,
  RECOVERY,
  WINDOW,
  DCQCN,
  INCAST,
  STORM,
  SIGNALS,
  OWN,
];

/** In the order of the page. */
export const SCENES: readonly Scene[] = [...SIMULATED_SCENES, CAPTURE];
