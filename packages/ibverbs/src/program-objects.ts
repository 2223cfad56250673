/** What a program has: objects of the NIC, with the rings in its memory that they use. */

import type { Socket } from 'node:net';
import { RoceError } from 'rocev2/internal/core';
import type { InlineEngine, SharedMemoryPorts } from 'rocev2/internal/driver';
import type { RdmaDevice } from 'rocev2/internal/verbs';
import type { DescriptorSocket } from './descriptor-socket.js';
import type { NicMessage } from './messages.js';
import { type OfferedRing, openRing, type SharedSegment } from './shared-ring.js';

const RING_BYTES_MAX = 4 * 2 ** 30;

/** In the order in which they are freed when the program has ended: each before what it uses. */
const KINDS = ['qp', 'mw', 'mr', 'ah', 'srq', 'cq', 'pd'] as const;
export type Kind = (typeof KINDS)[number];

export interface OwnObject {
  segments: readonly SharedSegment[];
  memoryIds: readonly number[];
  /** Of a completion queue: what its channel is sent. */
  readonly cookie?: bigint;
  readonly channel?: Socket | undefined;
}

/** What the programs of a NIC process share. */
export interface SharedNic {
  readonly device: RdmaDevice;
  readonly engine: InlineEngine;
  readonly ports: SharedMemoryPorts;
  readonly descriptors: DescriptorSocket;
}

const PLAIN: OwnObject = { segments: [], memoryIds: [] };

export class ProgramObjects {
  readonly #nic: SharedNic;
  readonly #pid: number;
  readonly #objects: Readonly<Record<Kind, Map<number, OwnObject>>> = {
    qp: new Map(),
    mw: new Map(),
    mr: new Map(),
    ah: new Map(),
    srq: new Map(),
    cq: new Map(),
    pd: new Map(),
  };
  #ringBytes = 0;

  constructor(nic: SharedNic, pid: number) {
    this.#nic = nic;
    this.#pid = pid;
  }

  get count(): number {
    return KINDS.reduce((sum, kind) => sum + this.#objects[kind].size, 0);
  }

  of(kind: Kind): ReadonlyMap<number, OwnObject> {
    return this.#objects[kind];
  }

  /** Its number, if it belongs to this program. Throws ERR_ROCE_NOT_FOUND. */
  own(kind: Kind, handle: number): number {
    if (this.#objects[kind].has(handle)) return handle;
    throw new RoceError('ERR_ROCE_NOT_FOUND', `process ${this.#pid} has no ${kind} ${handle}`);
  }

  openRings(...rings: readonly OfferedRing[]): SharedSegment[] {
    const ringBytes = rings.reduce((sum, [, bytes]) => sum + bytes, this.#ringBytes);
    if (ringBytes > RING_BYTES_MAX) throw new RoceError('ERR_ROCE_LIMIT', 'too much memory in rings');
    const segments: SharedSegment[] = [];
    try {
      for (const place of rings) segments.push(openRing(this.#nic.ports, this.#pid, place));
      return segments;
    } catch (error) {
      for (const segment of segments) segment.close();
      throw error;
    }
  }

  /** Makes an object that uses these rings, and puts its number into the message. */
  async create(
    kind: Kind,
    segments: readonly SharedSegment[],
    message: NicMessage,
    make: (memoryIds: readonly number[]) => Promise<number>,
    more: Partial<OwnObject> = {},
  ): Promise<void> {
    const memoryIds = segments.map(({ memory }) => this.#nic.engine.attach(memory));
    const object = { ...more, segments, memoryIds };
    try {
      this.add(kind, await make(memoryIds), message, object);
    } catch (error) {
      this.#release(object);
      throw error;
    }
    for (const { memory } of segments) this.#ringBytes += memory.byteLength;
  }

  /** Replaces the ring of a queue by the one that the message names. */
  async resize(kind: 'cq' | 'srq', message: NicMessage, change: (memory: number) => Promise<unknown>): Promise<void> {
    const object = this.#objects[kind].get(this.own(kind, message.number(0)))!;
    const segments = this.openRings([message.number(1), message.number(2)]);
    const memoryIds = segments.map(({ memory }) => this.#nic.engine.attach(memory));
    try {
      await change(memoryIds[0]);
    } catch (error) {
      this.#release({ segments, memoryIds });
      throw error;
    }
    const old = { segments: object.segments, memoryIds: object.memoryIds };
    this.#ringBytes += segments[0].memory.byteLength - old.segments[0].memory.byteLength;
    object.segments = segments;
    object.memoryIds = memoryIds;
    this.#release(old);
  }

  add(kind: Kind, handle: number, message: NicMessage, object: OwnObject = PLAIN): void {
    this.#objects[kind].set(handle, object);
    message.set(0, handle);
  }

  async free(kind: Kind, handle: number): Promise<void> {
    this.own(kind, handle);
    await this.#destroy(kind, handle);
    const object = this.#objects[kind].get(handle)!;
    this.#objects[kind].delete(handle);
    for (const { memory } of object.segments) this.#ringBytes -= memory.byteLength;
    this.#release(object);
  }

  async freeAll(): Promise<void> {
    for (const kind of KINDS) for (const handle of [...this.#objects[kind].keys()]) await this.free(kind, handle);
  }

  #release({ memoryIds, segments }: OwnObject): void {
    for (const id of memoryIds) this.#nic.engine.detach(id);
    for (const segment of segments) segment.close();
  }

  async #destroy(kind: Kind, handle: number): Promise<void> {
    const { device } = this.#nic;
    switch (kind) {
      case 'qp':
        await device.command('destroyQp', { qpn: handle });
        return;
      case 'mw':
        await device.command('deallocMw', { mw: handle });
        return;
      case 'mr':
        await device.command('deregMr', { mr: handle });
        return;
      case 'ah':
        await device.command('destroyAh', { ah: handle });
        return;
      case 'srq':
        await device.command('destroySrq', { srq: handle });
        return;
      case 'cq':
        await device.command('destroyCq', { cq: handle });
        return;
      case 'pd':
        await device.command('deallocPd', { pd: handle });
        return;
    }
  }
}
