/**
 * Internals of window that the packages of this repository use. No part of the public API: it changes without notice.
 */

export { BlockRequester, BlockServer } from '../window/alloc-per-write.js';
export { checkPool } from '../window/block-memory.js';
export { PoolOwner } from '../window/pool-owner.js';
export { PoolWriter } from '../window/pool-writer.js';
export { checkNagle, NaglePolicy, NoDelayPolicy, POLICY_NAMES } from '../window/release-policy.js';
export { WindowLink, windowQueueDepths } from '../window/window-link.js';
