/** Internals of nic that the packages of this repository use. No part of the public API: it changes without notice. */

export { Engine } from '../nic/engine.js';
export { Nic, type NicOptions, type NicTuning } from '../nic/nic.js';
export type { AddressFields } from '../nic/peer-paths.js';
