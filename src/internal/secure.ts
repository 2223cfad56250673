/**
 * Internals of secure that the packages of this repository use. No part of the public API: it changes without notice.
 */

export { parseKeyLog } from '../port/secure/key-log.js';
export { KeyRing, RECORD_OPENED, RECORD_WITHOUT_KEY } from '../port/secure/key-ring.js';
