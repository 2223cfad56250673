/** Memory that other processes of this user can map: sealed memfds, through koffi. */

import { readFileSync } from 'node:fs';
import process from 'node:process';
import { markShared } from '../core/shared-buffers.js';
import { copyableView } from '../dgram-ext/copyable-view.js';
import { type LibC, libC } from '../dgram-ext/libc.js';
import type { ProcessName } from '../memory/mapped/grant-table.js';
import type { MappedPart, MemoryMapping, PeerSegment } from '../memory/mapped/memory-mapping.js';
import { Segment } from '../port/shm/segment.js';
import { systemRandom } from './system-random.js';

/** Each takes a descriptor of this process. */
const SEGMENTS_MAX = 256;
const PAGE_BYTES = 4096;
/** Field 22 of /proc/PID/stat (proc(5)), counted from the state, which follows the name in parentheses. */
const START_TIME_FIELD = 19;

/** When a process started, in clock ticks since boot; undefined: there is no such process. */
function startOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields[0] === 'Z' || fields[0] === 'X' ? undefined : Number(fields[START_TIME_FIELD]);
  } catch {
    return undefined;
  }
}

/** Segments of this thread that are freed when the program has let go of their memory. */
let segments = 0;
const forgotten = new FinalizationRegistry<() => void>((free) => {
  segments--;
  free();
});

/** {@link MemoryMapping} of this system. */
export class SystemMemoryMapping implements MemoryMapping {
  readonly process: ProcessName;
  readonly u32: () => number = systemRandom().u32;
  readonly #lib: LibC;
  readonly #isForThreads: boolean;
  readonly #segments = new WeakMap<ArrayBufferLike, Segment<ArrayBufferLike>>();

  constructor(lib: LibC, started: number, isForThreads: boolean) {
    this.#lib = lib;
    this.#isForThreads = isForThreads;
    this.process = { pid: process.pid, started };
  }

  allocate(bytes: number): ArrayBufferLike | undefined {
    if (bytes === 0 || segments >= SEGMENTS_MAX) return undefined;
    const segment = this.#create(() =>
      this.#isForThreads ? Segment.createForThreads(this.#lib, bytes) : Segment.create(this.#lib, bytes, 'region'),
    );
    if (segment === undefined) return undefined;
    const { memory } = segment;
    segments++;
    forgotten.register(memory, segment.freeing());
    this.#segments.set(memory, segment);
    return memory;
  }

  descriptorOf(memory: ArrayBufferLike): number | undefined {
    return this.#segments.get(memory)?.fd;
  }

  createTable(bytes: number): Segment | undefined {
    return this.#create(() => Segment.create(this.#lib, bytes, 'grants'));
  }

  #create<S>(create: () => S): S | undefined {
    try {
      return create();
    } catch {
      return undefined; // No descriptors, or no memory: the program uses other memory.
    }
  }

  open({ pid, fd, kind, segmentBytes, start, bytes, access }: PeerSegment): MappedPart | undefined {
    const before = start % PAGE_BYTES;
    const part = { start: start - before, bytes: bytes + before, access };
    const segment = Segment.openPart(this.#lib, { pid, fd, kind, bytes: segmentBytes }, part);
    if (segment === undefined) return undefined;
    markShared(segment.memory);
    return { bytes: new Uint8Array(segment.memory, before, bytes), close: () => segment.close() };
  }

  copyable(memory: ArrayBufferLike): ArrayBufferLike {
    return memory instanceof SharedArrayBuffer ? copyableView(memory) : memory;
  }

  hasEnded({ pid, started }: ProcessName): boolean {
    return startOf(pid) !== started;
  }
}

/**
 * Undefined where memory cannot be mapped: not on Linux, or without koffi. `isForThreads`: what it allocates are
 * SharedArrayBuffers.
 */
export function memoryMapping(isForThreads: boolean): SystemMemoryMapping | undefined {
  const lib = libC();
  const started = startOf(process.pid);
  return typeof lib === 'string' || started === undefined
    ? undefined
    : new SystemMemoryMapping(lib, started, isForThreads);
}
