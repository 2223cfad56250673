import { OptionalPart } from '../core/optional-part.js';

export type Telemetry = typeof import('./device-telemetry.js');

/** Relative to this file; from a bundle there is no such file. */
const MODULE = './device-telemetry.js';

export const TELEMETRY = new OptionalPart<Telemetry>(
  'the telemetry of the device',
  'rocev2/telemetry',
  () => import(/* @vite-ignore */ /* webpackIgnore: true */ MODULE),
);
