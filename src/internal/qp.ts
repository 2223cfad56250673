/** Internals of qp that the packages of this repository use. No part of the public API: it changes without notice. */

export { initialAttributes } from '../qp/attributes.js';
export { ConnectedQueuePair } from '../qp/connected-queue-pair.js';
export type { Timed } from '../qp/host.js';
export type { NicQueuePair } from '../qp/nic-queue-pair.js';
export type { ConnectedPeer } from '../qp/path.js';
export type { SendArbiter } from '../qp/send-arbiter.js';
