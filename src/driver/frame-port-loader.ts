import { OptionalPart } from '../core/optional-part.js';

export type FramePorts = typeof import('./frame-ports.js');

/** Relative to this file; from a bundle there is no such file. */
const MODULE = './frame-ports.js';

export const FRAME_PORTS = new OptionalPart<FramePorts>(
  'the port of Ethernet frames',
  'rocev2/frame-port',
  () => import(/* @vite-ignore */ /* webpackIgnore: true */ MODULE),
);
