/**
 * `rocev2/frame-port`: makes the port of Ethernet frames part of a bundle. A bundled program that opens devices with
 * `frame` imports it once, for its effect; a program that runs from `node_modules` does not need it. See
 * docs/how-to/deploy.md.
 *
 * @module rocev2/frame-port
 */

import { FRAME_PORTS } from './frame-port-loader.js';
import * as ports from './frame-ports.js';

FRAME_PORTS.provide(ports);
