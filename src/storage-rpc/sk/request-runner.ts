import { RoceError } from '../../core/errors.js';
import type { FairClient } from '../../core/fair-queue.js';
import { type BlockDevice, isWholeBlocks } from '../disk/block-device.js';
import type { DataBuffer, SkIncoming, SkServerChannel } from './channel.js';
import { crcsOfChecks, type DataChecks, firstBadBlock } from './data-checks.js';
import { encodeExtents } from './extents.js';
import { SK_FUA, SK_NO_HOLE, type SkRequest } from './request.js';
import type { SkStatus } from './response.js';
import type { ServedDisk } from './served-disk.js';
import type { SkServerCounters } from './server-counters.js';

export interface RequestOutcome {
  readonly status: SkStatus;
  readonly data?: DataBuffer | undefined;
  readonly crcs?: Uint32Array | undefined;
}

const EMPTY = new Uint8Array(0);
/** A multiple of the block of a check. */
const PULL_BYTES = 128 << 10;

export interface RequestRunnerParts {
  readonly disk: ServedDisk;
  readonly turns: FairClient;
  readonly counters: SkServerCounters;
  readonly isFenced: () => boolean;
}

export class RequestRunner {
  readonly #parts: RequestRunnerParts;

  constructor(parts: RequestRunnerParts) {
    this.#parts = parts;
  }

  async read(channel: SkServerChannel, request: SkRequest): Promise<RequestOutcome> {
    const { offset, length } = request;
    if (length === 0) {
      await this.#atDisk(0, (device) => device.read(offset, 0, EMPTY));
      return { status: 'OK' };
    }
    const found = channel.buffer(length);
    const data = found instanceof Promise ? await found : found;
    try {
      return await this.#atDisk(length, async (device) => {
        if (device.readChecked === undefined || !isWholeBlocks(offset, length)) {
          await device.read(offset, length, data.bytes);
          return { status: 'OK', data };
        }
        return { status: 'OK', crcs: await device.readChecked(offset, length, data.bytes), data };
      });
    } catch (error) {
      data.release();
      throw error;
    }
  }

  async change(channel: SkServerChannel, incoming: SkIncoming): Promise<RequestOutcome | undefined> {
    const { op, offset, length, flags } = incoming.request;
    const fua = (flags & SK_FUA) !== 0;
    switch (op) {
      case 'WRITE':
        return this.#write(channel, incoming, fua);
      case 'FLUSH':
        await this.#atDisk(0, (device) => device.flush());
        break;
      case 'TRIM':
        await this.#atDisk(0, (device) => device.trim(offset, length));
        break;
      case 'ZERO':
        await this.#atDisk(0, (device) =>
          device.writeZeroes(offset, length, { fua, noHole: (flags & SK_NO_HOLE) !== 0 }),
        );
        break;
      case 'STATUS': {
        const extents = await this.#atDisk(0, async (device) => device.blockStatus?.(offset, length));
        if (extents === undefined) return { status: 'ENOTSUP' };
        return { status: 'OK', data: { bytes: encodeExtents(extents), release: () => {} } };
      }
      default:
        return { status: 'EINVAL' };
    }
    return { status: 'OK' };
  }

  async #write(channel: SkServerChannel, incoming: SkIncoming, fua: boolean): Promise<RequestOutcome | undefined> {
    const { request, list, inline } = incoming;
    const checks = { dataCrc: request.dataCrc, list };
    const pulled = inline === undefined && request.length > 0 ? await channel.buffer(request.length) : undefined;
    try {
      const data = pulled?.bytes ?? inline ?? EMPTY;
      const intact =
        pulled === undefined
          ? firstBadBlock(data, checks) < 0
          : await fetchIntact(channel, request, pulled, checks).catch(() => undefined);
      if (intact === undefined) return undefined;
      if (!intact) {
        this.#parts.counters.crcMismatches++;
        return { status: 'CRC_MISMATCH' };
      }
      // The client's checksums are kept end to end.
      const isChecked = data.length > 0 && isWholeBlocks(request.offset, data.length);
      const options = isChecked ? { fua, crcs: crcsOfChecks(checks) } : { fua };
      await this.#atDisk(data.length, (device) => device.write(request.offset, data, options));
      return { status: 'OK' };
    } finally {
      pulled?.release();
    }
  }

  async #atDisk<T>(bytes: number, work: (device: BlockDevice) => Promise<T>): Promise<T> {
    const turn = this.#parts.turns.take(bytes, this.#parts.disk.limit);
    if (turn !== undefined) await turn;
    try {
      return await this.#parts.disk.use((device) => {
        if (this.#parts.isFenced()) throw new RoceError('ERR_ROCE_FENCED', 'another client has taken over the disk');
        return work(device);
      });
    } finally {
      this.#parts.turns.done();
      this.#parts.turns.give(bytes);
    }
  }
}

async function fetchIntact(
  channel: SkServerChannel,
  request: SkRequest,
  into: DataBuffer,
  checks: DataChecks,
): Promise<boolean> {
  const { length } = request;
  const parts = Array.from({ length: Math.ceil(length / PULL_BYTES) }, async (_, i) => {
    const from = i * PULL_BYTES;
    const to = Math.min(length, from + PULL_BYTES);
    await channel.pull(request, into, from, to - from);
    return firstBadBlock(into.bytes, checks, from, to) < 0;
  });
  const outcomes = await Promise.allSettled(parts);
  return outcomes.every((outcome) => {
    if (outcome.status === 'rejected') throw outcome.reason;
    return outcome.value;
  });
}
