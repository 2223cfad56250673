/**
 * Where {@link openDevice} gets telemetry from: it and its HTTP server are a tenth of the library, so that only programs load it that ask for it. Bundlers
 * do not follow this import; a bundle has telemetry when its program imports `rocev2/telemetry`.
 */

import { RoceError } from '../core/errors.js';

/** What telemetry does for devices. */
export type Telemetry = typeof import('./device-telemetry.js');

/** Relative to this file; from a bundle there is no such file. */
const MODULE = './device-telemetry.js';

let provided: Telemetry | undefined;

/** Telemetry that is part of the program, as in a bundle. */
export function provideTelemetry(telemetry: Telemetry): void {
  provided = telemetry;
}

/** Loads it once. Rejects with ERR_ROCE_NOT_FOUND in a bundle that has left it out. */
export async function loadTelemetry(): Promise<Telemetry> {
  provided ??= await importTelemetry();
  return provided;
}

async function importTelemetry(): Promise<Telemetry> {
  try {
    return (await import(/* @vite-ignore */ /* webpackIgnore: true */ MODULE)) as Telemetry;
  } catch (cause) {
    throw new RoceError(
      'ERR_ROCE_NOT_FOUND',
      'the telemetry of the device cannot be loaded: this program seems to be a bundle that has left it out',
      "add import 'rocev2/telemetry' to the program: docs/packaging.md",
      { cause },
    );
  }
}
