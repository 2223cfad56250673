/** Where devices with `secure` get the port from that seals and opens packets. */

import { OptionalPart } from '../core/optional-part.js';

/** What seals and opens packets. */
export type SecurePorts = typeof import('./secure-ports.js');

/** Relative to this file; from a bundle there is no such file. */
const MODULE = './secure-ports.js';

/** The port that protects packets, loaded when a device is opened with `secure`. */
export const SECURE_PORTS = new OptionalPart<SecurePorts>(
  'the protection of packets',
  'rocev2/secure',
  () => import(/* @vite-ignore */ /* webpackIgnore: true */ MODULE),
);
