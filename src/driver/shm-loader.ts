/** Where devices with `io: 'shm'` or `'auto'` get their port from: a twentieth of the library. */

import { OptionalPart } from '../core/optional-part.js';

/** What opens such ports. */
export type SharedMemoryPorts = typeof import('./shm-ports.js');

/** Relative to this file; from a bundle there is no such file. */
const MODULE = './shm-ports.js';

/** The port through shared memory, loaded when a device is opened that may share memory. */
export const SHARED_MEMORY_PORTS = new OptionalPart<SharedMemoryPorts>(
  'the port through shared memory',
  'rocev2/shm',
  () => import(/* @vite-ignore */ /* webpackIgnore: true */ MODULE),
);
