/**
 * `@rocev2/primitives`: counters, sequencers, locks, semaphores, barriers and rings between processes, by one-sided
 * atomics on the memory of one of them. They work while that one computes. See docs/primitives.md.
 *
 * @module @rocev2/primitives
 */

export { RemoteBarrier } from './barrier.js';
export { type BarrierOptions, type LockOptions, Primitives, type SemaphoreOptions } from './client.js';
export { RemoteCounter } from './counter.js';
export { Lease } from './lease.js';
export {
  type OpenPrimitivesOptions,
  openPrimitives,
  PrimitivesServer,
  type ServePrimitivesOptions,
  servePrimitives,
} from './live.js';
export { RemoteLock } from './lock.js';
export { PrimitivesOwner, type RingOptions } from './owner.js';
export { RemoteRing } from './ring.js';
export { RingConsumer } from './ring-consumer.js';
export { RemoteSemaphore } from './semaphore.js';
export { RemoteSequencer } from './sequencer.js';
