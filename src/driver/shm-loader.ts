import { OptionalPart } from '../core/optional-part.js';

export type SharedMemoryPorts = typeof import('./shm-ports.js');

/** Relative to this file; from a bundle there is no such file. */
const MODULE = './shm-ports.js';

export const SHARED_MEMORY_PORTS = new OptionalPart<SharedMemoryPorts>(
  'the port through shared memory',
  'rocev2/shm',
  () => import(/* @vite-ignore */ /* webpackIgnore: true */ MODULE),
);
