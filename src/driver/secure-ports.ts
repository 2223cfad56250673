/** What {@link SECURE_PORTS} loads. */

export { keyLogLines } from '../secure/key-log.js';
export { NodeCipher } from '../secure/packet-cipher.js';
export { SecurePort } from '../secure/secure-port.js';
export { fastestCipher } from './evp-cipher.js';
export { appendToKeyLog } from './key-log-file.js';
