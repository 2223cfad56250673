/** Where {@link openDevice} gets telemetry from: it and its HTTP server are a tenth of the library. */

import { OptionalPart } from '../core/optional-part.js';

/** What telemetry does for devices. */
export type Telemetry = typeof import('./device-telemetry.js');

/** Relative to this file; from a bundle there is no such file. */
const MODULE = './device-telemetry.js';

/** Telemetry, loaded when a device is opened with `estats`. */
export const TELEMETRY = new OptionalPart<Telemetry>(
  'the telemetry of the device',
  'rocev2/telemetry',
  () => import(/* @vite-ignore */ /* webpackIgnore: true */ MODULE),
);
