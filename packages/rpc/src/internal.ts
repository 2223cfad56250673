/**
 * What the other packages of this repository use of @rocev2/rpc, besides its public entry. It changes without notice.
 */

export { HEADER_BYTES } from './frame.js';
export { type Fields, isCount, isDecimal, shape } from './shape.js';
