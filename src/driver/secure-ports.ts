/** What {@link SECURE_PORTS} loads. */

export { NodeCipher } from '../secure/packet-cipher.js';
export { SecurePort } from '../secure/secure-port.js';
export { fastestCipher } from './evp-cipher.js';
