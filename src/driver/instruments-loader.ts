/** Where devices with fault rules, captures or traces get these from: a tenth of what a bundle would have to carry. */

import { OptionalPart } from '../core/optional-part.js';

/** Ports around a port, and the files that they write. */
export type Instruments = typeof import('./instrument-parts.js');

/** Relative to this file; from a bundle there is no such file. */
const MODULE = './instrument-parts.js';

/** Fault rules, captures and traces, loaded when a device is opened with one of them. */
export const INSTRUMENTS = new OptionalPart<Instruments>(
  'what captures, traces and damages packets',
  'rocev2/instruments',
  () => import(/* @vite-ignore */ /* webpackIgnore: true */ MODULE),
);
