/**
 * The shared packet memory of a switch chip, by the rules of SONiC and of Azure's paper (NSDI'23): three pools on one
 * memory of B bytes. P_in and the headroom pool split the memory; the egress lossy pool limits a part of P_in; the
 * egress lossless pool never binds. A lossless frame is charged to its ingress queue: the reserve, then the shared part
 * while the queue is below alpha times the free shared memory; beyond that the queue sends XOFF and uses headroom.
 * Leaving frames release headroom, shared, reserve, in this order; with the headroom empty and the queue an offset
 * below its threshold (or nothing left of the shared part) it sends XON. A lossy frame meets only the dynamic threshold
 * of its egress queue. Invariants: shared + reserved + headroom = the bytes in all queues <= B; lossy bytes are never
 * in the headroom; every counter is 0 when all queues are empty, and no sender is paused then; XOFF and XON alternate
 * for each queue.
 */

import { PRIORITIES } from 'rocev2/internal/packet';
import type { BufferLayout } from './buffer-layout.js';
import {
  ADMITTED,
  type BufferPolicy,
  type BufferPools,
  HEADROOM_FULL,
  type IngressGroupUse,
  LOSSY_THRESHOLD,
  POOL_FULL,
  type PoolUse,
} from './buffer-policy.js';
import type { EgressQueues } from './egress-queues.js';
import type { PauseSender } from './pause-sender.js';

class Pool {
  readonly sizeBytes: number;
  usedBytes = 0;
  maxBytes = 0;

  constructor(sizeBytes: number) {
    this.sizeBytes = sizeBytes;
  }

  get freeBytes(): number {
    return this.sizeBytes - this.usedBytes;
  }

  get use(): PoolUse {
    return { sizeBytes: this.sizeBytes, usedBytes: this.usedBytes, maxBytes: this.maxBytes };
  }

  add(bytes: number): void {
    this.usedBytes += bytes;
    if (this.usedBytes > this.maxBytes) this.maxBytes = this.usedBytes;
  }
}

export class SharedBuffer implements BufferPolicy {
  readonly #shared: Pool;
  readonly #headroom: Pool;
  readonly #egressLossy: Pool;
  readonly #egressLossless: Pool;
  /** By ingress queue, port * 8 + priority: bytes outside the headroom, the reserve first. */
  readonly #usedBytes: Float64Array;
  readonly #usedBytesMax: Float64Array;
  readonly #headroomBytes: Float64Array;
  readonly #headroomBytesMax: Float64Array;
  readonly #xoff: Uint8Array;
  readonly #xoffs: Float64Array;
  readonly #lost: Float64Array;

  readonly #layout: BufferLayout;
  readonly #queues: EgressQueues;
  readonly #pauses: PauseSender;

  constructor(layout: BufferLayout, queues: EgressQueues, pauses: PauseSender) {
    const groups = queues.bytes.length;
    this.#shared = new Pool(layout.sharedBytes);
    this.#headroom = new Pool(layout.headroomPoolBytes);
    this.#egressLossy = new Pool(layout.egressLossyPoolBytes);
    this.#egressLossless = new Pool(layout.totalBytes);
    this.#usedBytes = new Float64Array(groups);
    this.#usedBytesMax = new Float64Array(groups);
    this.#headroomBytes = new Float64Array(groups);
    this.#headroomBytesMax = new Float64Array(groups);
    this.#xoff = new Uint8Array(groups);
    this.#xoffs = new Float64Array(groups);
    this.#lost = new Float64Array(groups);
    this.#layout = layout;
    this.#queues = queues;
    this.#pauses = pauses;
  }

  admit(ingress: number, egress: number, priority: number, bytes: number): number {
    return (this.#layout.losslessMask & (1 << priority)) === 0
      ? this.#admitLossy(ingress * PRIORITIES + priority, egress * PRIORITIES + priority, bytes)
      : this.#admitLossless(ingress, priority, bytes);
  }

  depart(ingress: number, _egress: number, priority: number, bytes: number): void {
    const group = ingress * PRIORITIES + priority;
    if ((this.#layout.losslessMask & (1 << priority)) === 0) {
      this.#usedBytes[group] -= bytes;
      this.#shared.usedBytes -= bytes;
      this.#egressLossy.usedBytes -= bytes;
      return;
    }
    const fromHeadroom = Math.min(bytes, this.#headroomBytes[group]);
    this.#headroomBytes[group] -= fromHeadroom;
    this.#headroom.usedBytes -= fromHeadroom;
    const rest = bytes - fromHeadroom;
    this.#shared.usedBytes -= Math.min(rest, this.#sharedOf(group));
    this.#usedBytes[group] -= rest;
    this.#egressLossless.usedBytes -= bytes;
    if (this.#xoff[group] === 1 && this.#mayGoOn(group)) this.#goOn(ingress, priority);
  }

  #sharedOf(group: number): number {
    return Math.max(0, this.#usedBytes[group] - this.#layout.reservedBytes);
  }

  get #losslessThresholdBytes(): number {
    return this.#layout.losslessAlpha * this.#shared.freeBytes;
  }

  pools(): BufferPools {
    return {
      shared: this.#shared.use,
      headroom: this.#headroom.use,
      egressLossy: this.#egressLossy.use,
      egressLossless: this.#egressLossless.use,
    };
  }

  group(ingress: number, priority: number): IngressGroupUse {
    const group = ingress * PRIORITIES + priority;
    return {
      usedBytes: this.#usedBytes[group],
      usedBytesMax: this.#usedBytesMax[group],
      headroomBytes: this.#headroomBytes[group],
      headroomBytesMax: this.#headroomBytesMax[group],
      isXoff: this.#xoff[group] === 1,
      xoffs: this.#xoffs[group],
      lostPackets: this.#lost[group],
    };
  }

  resetWatermarks(): void {
    for (const pool of [this.#shared, this.#headroom, this.#egressLossy, this.#egressLossless]) {
      pool.maxBytes = pool.usedBytes;
    }
    this.#usedBytesMax.set(this.#usedBytes);
    this.#headroomBytesMax.set(this.#headroomBytes);
  }

  #admitLossy(group: number, queue: number, bytes: number): number {
    const shared = this.#shared;
    const egressLossy = this.#egressLossy;
    if (this.#queues.bytes[queue] + bytes > this.#layout.lossyAlpha * egressLossy.freeBytes) return LOSSY_THRESHOLD;
    // With alpha above 1 the threshold is no bound, and lossy traffic beyond P_in would use headroom.
    if (bytes > egressLossy.freeBytes || bytes > shared.freeBytes) return POOL_FULL;
    egressLossy.add(bytes);
    shared.add(bytes);
    this.#use(group, bytes);
    return ADMITTED;
  }

  #admitLossless(ingress: number, priority: number, bytes: number): number {
    const group = ingress * PRIORITIES + priority;
    if (this.#xoff[group] === 0) {
      const before = this.#sharedOf(group);
      const after = Math.max(0, this.#usedBytes[group] + bytes - this.#layout.reservedBytes);
      if (after === 0 || (after <= this.#losslessThresholdBytes && after - before <= this.#shared.freeBytes)) {
        this.#shared.add(after - before);
        this.#use(group, bytes);
        this.#egressLossless.add(bytes);
        return ADMITTED;
      }
      this.#xoff[group] = 1;
      this.#xoffs[group]++;
      this.#pauses.xoff(ingress, priority);
    }
    const inHeadroom = this.#headroomBytes[group] + bytes;
    if (inHeadroom > this.#layout.headroomBytes[ingress] || bytes > this.#headroom.freeBytes) {
      this.#lost[group]++;
      // Nothing leaves an empty queue that could let its sender continue.
      if (this.#usedBytes[group] === 0 && this.#headroomBytes[group] === 0) this.#goOn(ingress, priority);
      return HEADROOM_FULL;
    }
    this.#headroomBytes[group] = inHeadroom;
    if (inHeadroom > this.#headroomBytesMax[group]) this.#headroomBytesMax[group] = inHeadroom;
    this.#headroom.add(bytes);
    this.#egressLossless.add(bytes);
    return ADMITTED;
  }

  #use(group: number, bytes: number): void {
    const used = this.#usedBytes[group] + bytes;
    this.#usedBytes[group] = used;
    if (used > this.#usedBytesMax[group]) this.#usedBytesMax[group] = used;
  }

  #goOn(ingress: number, priority: number): void {
    this.#xoff[ingress * PRIORITIES + priority] = 0;
    this.#pauses.xon(ingress, priority);
  }

  #mayGoOn(group: number): boolean {
    if (this.#headroomBytes[group] > 0) return false;
    const shared = this.#sharedOf(group);
    return shared === 0 || shared + this.#layout.xonOffsetBytes <= this.#losslessThresholdBytes;
  }
}
