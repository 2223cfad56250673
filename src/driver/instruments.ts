/**
 * `rocev2/instruments`: makes fault rules, captures and traces part of a bundle. A bundled program that opens devices
 * with `loss`, `pcap` or `trace` imports it once, for its effect; a program that runs from `node_modules` does not need
 * it. See docs/how-to/deploy.md.
 *
 * @module rocev2/instruments
 */

import * as parts from './instrument-parts.js';
import { INSTRUMENTS } from './instruments-loader.js';

INSTRUMENTS.provide(parts);
