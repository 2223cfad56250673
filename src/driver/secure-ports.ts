export { keyLogLines } from '../port/secure/key-log.js';
export { SecurePort } from '../port/secure/secure-port.js';
export { chooseCipher, nodeCrypto } from './cipher/cipher-choice.js';
export { appendToKeyLog } from './key-log-file.js';
