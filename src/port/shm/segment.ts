/**
 * Memory shared by two processes of one user: a memfd (memfd_create(2)), freed with the last process. Its size is
 * sealed, so that no process can take pages away. The peer opens /proc/PID/fd/FD. The kernel permits this for the same
 * user and root, so {@link Segment.open} compares the users itself.
 */

import { closeSync, constants, fstatSync, ftruncateSync, openSync, readlinkSync, statSync } from 'node:fs';
import process from 'node:process';
import { getSystemErrorName } from 'node:util';
import { RoceError } from '../../core/errors.js';
import type { LibC } from '../../dgram-ext/libc.js';

/** What a segment holds: a ring of packets, the grants of a device, or memory that can be registered. */
export type SegmentKind = 'ring' | 'grants' | 'region';
/** How a peer maps a segment. */
export type SegmentAccess = 'read' | 'write';

const MFD_CLOEXEC_ALLOW_SEALING = 3;
const F_ADD_SEALS = 1033;
const F_GET_SEALS = 1034;
const SEALS = 1 | 2 | 4;
/**
 * open(2): refers to the file without opening it. Node does not export it; all Linux architectures of koffi share it.
 */
const O_PATH = 0o10000000;
const PROT_READ = 1;
const PROT_WRITE = 2;
const MAP_SHARED = 0x1;
const MAP_FIXED = 0x10;
const MAP_POPULATE = 0x8000;
/** Page tables of longer parts are made when they are used: for all of them at once the program would wait. */
const POPULATED_BYTES_MAX = 64 << 20;
const MAP_FAILED = -1;
const PAGE_BYTES = 4096;
/** A page of WebAssembly. */
const THREADS_MEMORY_UNIT = 65_536;
/** The part that is used here; Node's types have no values of it. */
const { WebAssembly: Wasm } = globalThis as unknown as {
  readonly WebAssembly: {
    readonly Memory: new (memory: {
      readonly initial: number;
      readonly maximum: number;
      readonly shared: true;
    }) => { readonly buffer: SharedArrayBuffer };
  };
};

/** How another process names a segment: descriptor `fd` of process `pid`. */
export interface SegmentName {
  readonly pid: number;
  readonly fd: number;
  readonly kind: SegmentKind;
  /** Of the whole segment. */
  readonly bytes: number;
}

export interface SegmentPart {
  readonly start: number;
  readonly bytes: number;
  readonly access: SegmentAccess;
}

/** Its memory must not be touched after {@link Segment.close}. */
export class Segment<M extends ArrayBufferLike = ArrayBuffer> {
  readonly #lib: LibC;
  readonly #address: number;
  readonly memory: M;
  /** Descriptor that names it to the peer; -1 where the peer has named it. */
  #fd: number;

  private constructor(lib: LibC, address: number, memory: M, fd: number) {
    this.#lib = lib;
    this.#address = address;
    this.memory = memory;
    this.#fd = fd;
  }

  static create(lib: LibC, bytes: number, kind: SegmentKind = 'ring'): Segment {
    return Segment.#make(lib, bytes, kind, (fd) => {
      // Memory for regions gets its pages as other memory does.
      const address = map(lib, fd, { start: 0, bytes, access: 'write' }, kind === 'region' ? 0 : MAP_POPULATE);
      return new Segment(lib, address, lib.view(address, bytes), fd);
    });
  }

  /**
   * A segment for a region, as a SharedArrayBuffer, which threads of this process can share. `bytes` is rounded up to
   * {@link THREADS_MEMORY_UNIT}. The memory is that of a WebAssembly.Memory, whose pages V8 maps and unmaps by
   * themselves; those of the memfd take their addresses. Undefined: this runtime has no such memory.
   */
  static createForThreads(lib: LibC, bytes: number): Segment<SharedArrayBuffer> | undefined {
    const units = Math.ceil(bytes / THREADS_MEMORY_UNIT);
    const { buffer } = new Wasm.Memory({ initial: units, maximum: units, shared: true });
    const begin = lib.addressOf(new Uint8Array(buffer));
    if (begin % PAGE_BYTES !== 0) return undefined;
    return Segment.#make(lib, buffer.byteLength, 'region', (fd) => {
      map(lib, fd, { start: 0, bytes: buffer.byteLength, access: 'write' }, MAP_FIXED, begin);
      return new Segment(lib, begin, buffer, fd);
    });
  }

  static #make<S>(lib: LibC, bytes: number, kind: SegmentKind, mapped: (fd: number) => S): S {
    const fd = lib.memfd_create(nameOf(kind), MFD_CLOEXEC_ALLOW_SEALING);
    if (fd < 0) throw failed(lib, 'make shared memory');
    try {
      ftruncateSync(fd, bytes);
      if (lib.fcntl(fd, F_ADD_SEALS, SEALS) < 0) throw failed(lib, 'seal shared memory');
      return mapped(fd);
    } catch (error) {
      lib.close(fd);
      throw error;
    }
  }

  /**
   * Opens the memory that another process offers, without waiting: other users may offer descriptors of any kind, such
   * as a file with a write lease, whose open(2) blocks for 45 s. Undefined: it is not a segment of this kind and of
   * exactly these bytes, of a process of this user.
   */
  static open(
    lib: LibC,
    pid: number,
    remoteFd: number,
    bytes: number,
    kind: SegmentKind = 'ring',
  ): Segment | undefined {
    return Segment.openPart(lib, { pid, fd: remoteFd, kind, bytes }, { start: 0, bytes, access: 'write' });
  }

  /**
   * As {@link Segment.open}, for the bytes [start, start + bytes) of a segment; `start` is a multiple of the page size.
   * With `access: 'read'` the descriptor is opened read-only, so that the mapping cannot become writable.
   */
  static openPart(
    lib: LibC,
    { pid, fd: remoteFd, kind, bytes: totalBytes }: SegmentName,
    part: SegmentPart,
  ): Segment | undefined {
    const uid = process.geteuid?.();
    let pinned = -1;
    let fd = -1;
    try {
      // The folder belongs to the user of the process, also where its files belong to root (proc_pid_environ(5)).
      if (statSync(`/proc/${pid}`).uid !== uid) return undefined;
      pinned = openSync(`/proc/${pid}/fd/${remoteFd}`, O_PATH);
      const path = `/proc/self/fd/${pinned}`;
      if (!readlinkSync(path).startsWith(`/memfd:${nameOf(kind)} `)) return undefined;
      const stats = fstatSync(pinned);
      if (stats.uid !== uid || stats.size !== totalBytes) return undefined;
      const flags = part.access === 'write' ? constants.O_RDWR : constants.O_RDONLY;
      fd = openSync(path, flags | constants.O_NONBLOCK);
      if ((lib.fcntl(fd, F_GET_SEALS, 0) & SEALS) !== SEALS) return undefined;
      const address = map(lib, fd, part, part.bytes <= POPULATED_BYTES_MAX ? MAP_POPULATE : 0);
      return new Segment(lib, address, lib.view(address, part.bytes), -1);
    } catch {
      return undefined; // The process has ended, the file has a lease, or the PID namespace differs.
    } finally {
      if (fd >= 0) closeSync(fd);
      if (pinned >= 0) closeSync(pinned);
    }
  }

  get fd(): number {
    return this.#fd;
  }

  forgetName(): void {
    if (this.#fd >= 0) this.#lib.close(this.#fd);
    this.#fd = -1;
  }

  close(): void {
    this.freeing()();
    this.#fd = -1;
  }

  /** What {@link close} does, without a reference to the segment and its memory. */
  freeing(): () => void {
    const [lib, address, bytes, fd] = [this.#lib, this.#address, this.memory.byteLength, this.#fd];
    const unmaps = this.memory instanceof ArrayBuffer; // V8 frees that of threads, after the last of them.
    return () => {
      if (fd >= 0) lib.close(fd);
      if (unmaps) lib.munmap(address, bytes);
    };
  }
}

function nameOf(kind: SegmentKind): string {
  return `rocev2-${kind}`;
}

function map(lib: LibC, fd: number, { start, bytes, access }: SegmentPart, flags: number, begin = 0): number {
  const protection = access === 'write' ? PROT_READ | PROT_WRITE : PROT_READ;
  const address = lib.mmap(begin, bytes, protection, MAP_SHARED | flags, fd, start);
  if (address === MAP_FAILED) throw failed(lib, 'map shared memory');
  return address;
}

function failed(lib: LibC, what: string): RoceError {
  return new RoceError('ERR_ROCE_IO', `cannot ${what}: ${getSystemErrorName(-lib.errno())}`);
}
