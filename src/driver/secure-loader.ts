import { OptionalPart } from '../core/optional-part.js';

export type SecurePorts = typeof import('./secure-ports.js');

/** Relative to this file; from a bundle there is no such file. */
const MODULE = './secure-ports.js';

export const SECURE_PORTS = new OptionalPart<SecurePorts>(
  'the protection of packets',
  'rocev2/secure',
  () => import(/* @vite-ignore */ /* webpackIgnore: true */ MODULE),
);
