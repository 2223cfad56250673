/**
 * `rocev2/secure`: makes the protection of packets part of a bundle. A bundled program that opens devices with `secure`
 * imports it once, for its effect; a program that runs from `node_modules` does not need it. See docs/how-to/deploy.md.
 *
 * @module rocev2/secure
 */

import { SECURE_PORTS } from './secure-loader.js';
import * as ports from './secure-ports.js';

SECURE_PORTS.provide(ports);
