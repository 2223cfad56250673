/** Internals of nic that the packages of this repository use. No part of the public API: it changes without notice. */

export { Engine } from '../nic/engine.js';
export type { NicOptions, NicTuning } from '../nic/nic.js';
export { ReservingNic } from '../nic/reserving-nic.js';
