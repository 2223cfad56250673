/**
 * `rocev2/telemetry`: makes telemetry part of a bundle. A bundled program that opens devices with `estats` imports it
 * once, for its effect; a program that runs from `node_modules` does not need it. See docs/how-to/deploy.md.
 *
 * @module rocev2/telemetry
 */

import * as telemetry from './device-telemetry.js';
import { TELEMETRY } from './telemetry-loader.js';

TELEMETRY.provide(telemetry);

export type { EstatsOptions } from './device-telemetry.js';
