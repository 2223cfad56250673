/**
 * Memory shared by two processes of one user: a memfd (memfd_create(2)), freed with the last process. Its size is
 * sealed, so that no process can take pages away. The peer opens /proc/PID/fd/FD, which the kernel permits to the same
 * user only.
 */

import { closeSync, fstatSync, ftruncateSync, openSync, readlinkSync } from 'node:fs';
import process from 'node:process';
import { getSystemErrorName } from 'node:util';
import { RoceError } from '../../core/errors.js';
import type { LibC } from '../../dgram-ext/libc.js';

const NAME = 'rocev2-ring';
const MFD_CLOEXEC_ALLOW_SEALING = 3;
const F_ADD_SEALS = 1033;
const F_GET_SEALS = 1034;
const SEALS = 1 | 2 | 4;
const PROT_READ_WRITE = 3;
const MAP_SHARED_POPULATE = 0x1 | 0x8000;
const MAP_FAILED = -1;

/** Its memory must not be touched after {@link Segment.close}. */
export class Segment {
  readonly #lib: LibC;
  readonly #address: number;
  readonly memory: ArrayBuffer;
  /** Descriptor that names it to the peer; -1 where the peer has named it. */
  #fd: number;

  private constructor(lib: LibC, address: number, bytes: number, fd: number) {
    this.#lib = lib;
    this.#address = address;
    this.memory = lib.view(address, bytes);
    this.#fd = fd;
  }

  static create(lib: LibC, bytes: number): Segment {
    const fd = lib.memfd_create(NAME, MFD_CLOEXEC_ALLOW_SEALING);
    if (fd < 0) throw failed(lib, 'make shared memory');
    try {
      ftruncateSync(fd, bytes);
      if (lib.fcntl(fd, F_ADD_SEALS, SEALS) < 0) throw failed(lib, 'seal shared memory');
      return new Segment(lib, map(lib, fd, bytes), bytes, fd);
    } catch (error) {
      lib.close(fd);
      throw error;
    }
  }

  static open(lib: LibC, pid: number, remoteFd: number, bytes: number): Segment | undefined {
    const path = `/proc/${pid}/fd/${remoteFd}`;
    let fd = -1;
    try {
      if (!readlinkSync(path).startsWith(`/memfd:${NAME}`)) return undefined;
      fd = openSync(path, 'r+');
      const { uid, size } = fstatSync(fd);
      if (uid !== process.getuid?.() || size !== bytes || (lib.fcntl(fd, F_GET_SEALS, 0) & SEALS) !== SEALS)
        return undefined;
      return new Segment(lib, map(lib, fd, bytes), bytes, -1);
    } catch {
      return undefined; // It has ended, or is of another PID namespace or user.
    } finally {
      if (fd >= 0) closeSync(fd);
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
    this.forgetName();
    this.#lib.munmap(this.#address, this.memory.byteLength);
  }
}

function map(lib: LibC, fd: number, bytes: number): number {
  const address = lib.mmap(0, bytes, PROT_READ_WRITE, MAP_SHARED_POPULATE, fd, 0);
  if (address === MAP_FAILED) throw failed(lib, 'map shared memory');
  return address;
}

function failed(lib: LibC, what: string): RoceError {
  return new RoceError('ERR_ROCE_IO', `cannot ${what}: ${getSystemErrorName(-lib.errno())}`);
}
