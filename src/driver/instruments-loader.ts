import { OptionalPart } from '../core/optional-part.js';

export type Instruments = typeof import('./instrument-parts.js');

/** Relative to this file; from a bundle there is no such file. */
const MODULE = './instrument-parts.js';

export const INSTRUMENTS = new OptionalPart<Instruments>(
  'what captures, traces and damages packets',
  'rocev2/instruments',
  () => import(/* @vite-ignore */ /* webpackIgnore: true */ MODULE),
);
