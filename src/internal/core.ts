/** Internals of core that the packages of this repository use. No part of the public API: it changes without notice. */

export { checkKind, checkObject, checkOneOf, checkOptions, checkWhole, type OptionNames } from '../core/arguments.js';
export { copyBytes, copyToSlot, fromHex, readU16, readU24, readU32, toHex, writeU16, writeU32 } from '../core/bytes.js';
export { type Clock, pause, wakeWhenDue } from '../core/clock.js';
export { ConnectionLimiter, type ConnectionLimits, type Origin, PENDING_LIMITS } from '../core/connection-limiter.js';
export { CRC32_RANGE_BYTES, crc32, crc32At, crc32Backend, crc32Range, crc32Step } from '../core/crc32.js';
export { crc32c } from '../core/crc32c.js';
export { namesHint, nearestName } from '../core/did-you-mean.js';
export { ERROR_CODES, invariant, isArgumentError, RoceError, type RoceErrorCode } from '../core/errors.js';
export { type FairClient, FairQueue } from '../core/fair-queue.js';
export { whyUnreadable, whyUnwritable } from '../core/file-errors.js';
export { finiteOrNull } from '../core/finite.js';
export { formatHostPort, type HostPort, parseHost, parseHostPort } from '../core/host-port.js';
export { completeParameters } from '../core/parameters.js';
export { Permits } from '../core/permits.js';
export { PromiseMutex } from '../core/promise-mutex.js';
export { type RandomSource, randomInt, randomUnit, SeededRandom } from '../core/random.js';
export { RefusedPeers } from '../core/refused-peers.js';
export { bigFromU64, highOfBig, lowOfBig, U32 } from '../core/u64.js';
export {
  formatBytes,
  formatNs,
  formatRate,
  NS_PER_MS,
  NS_PER_S,
  NS_PER_US,
  parseCount,
  parseDurationNs,
  parseRateBps,
  parseSizeBytes,
} from '../core/units.js';
export {
  type CancellationState,
  WAIT_OPTIONS,
  WaitDeadline,
  WaitList,
  type WaitOptions,
  waitFor,
  waitForEvent,
} from '../core/wait.js';
export { LOW_HALF } from '../core/word-order.js';
