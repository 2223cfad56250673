/**
 * `rocev2/shm`: makes the port through shared memory part of a bundle. A bundled program that opens devices with
 * `io: 'shm'` imports it once, for its effect; a program that runs from `node_modules` does not need it. See
 * docs/how-to/deploy.md.
 *
 * @module rocev2/shm
 */

import { SHARED_MEMORY_PORTS } from './shm-loader.js';
import * as ports from './shm-ports.js';

SHARED_MEMORY_PORTS.provide(ports);
