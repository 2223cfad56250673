/**
 * `rocev2/window`: the sliding-window memory pool over a connected queue pair. See docs/window.md.
 *
 * @module rocev2/window
 */

export type { Clock } from '../core/clock.js';
export { BlockRequester, BlockServer, type BlockServerOptions } from './alloc-per-write.js';
export type { BlockConsumer } from './block-releaser.js';
export { PoolOwner, type PoolOwnerOptions } from './pool-owner.js';
export { PoolReader, type PoolReaderOptions } from './pool-reader.js';
export { type BlockProducer, PoolSource, type PoolSourceOptions } from './pool-source.js';
export { PoolWriter, type PoolWriterOptions } from './pool-writer.js';
export {
  type BlockAcknowledgement,
  type NagleParameters,
  NaglePolicy,
  NoDelayPolicy,
  type ReleasePolicy,
} from './release-policy.js';
export { WindowLink, type WindowLinkParts, windowQueueDepths } from './window-link.js';
export type { ControlMessage } from './window-messages.js';
