/** Where devices with `frame` get their port from. Most devices have a UDP port. */

import { OptionalPart } from '../core/optional-part.js';

/** What opens such ports. */
export type FramePorts = typeof import('./frame-ports.js');

/** Relative to this file; from a bundle there is no such file. */
const MODULE = './frame-ports.js';

/** The port of Ethernet frames, loaded when a device is opened with it. */
export const FRAME_PORTS = new OptionalPart<FramePorts>(
  'the port of Ethernet frames',
  'rocev2/frame-port',
  () => import(/* @vite-ignore */ /* webpackIgnore: true */ MODULE),
);
