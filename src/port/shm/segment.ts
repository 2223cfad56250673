/**
 * Memory shared by two processes of one user: a memfd (memfd_create(2)), freed with the last process. Its size is
 * sealed, so that no process can take pages away. The peer opens /proc/PID/fd/FD. The kernel permits that to the same
 * user and to root, so {@link Segment.open} compares the users itself.
 */

import { closeSync, constants, fstatSync, ftruncateSync, openSync, readlinkSync, statSync } from 'node:fs';
import process from 'node:process';
import { getSystemErrorName } from 'node:util';
import { RoceError } from '../../core/errors.js';
import type { LibC } from '../../dgram-ext/libc.js';

const NAME = 'rocev2-ring';
const MFD_CLOEXEC_ALLOW_SEALING = 3;
const F_ADD_SEALS = 1033;
const F_GET_SEALS = 1034;
const SEALS = 1 | 2 | 4;
/** open(2): refers to the file without opening it. Node does not export it; all Linux architectures of koffi share it. */
const O_PATH = 0o10000000;
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

  /**
   * Opens what another process offers, without waiting: other users may offer descriptors of any kind, such as a file
   * with a write lease, whose open(2) blocks for 45 s. Undefined: it is not a ring of a process of this user.
   */
  static open(lib: LibC, pid: number, remoteFd: number, bytes: number): Segment | undefined {
    const uid = process.geteuid?.();
    let pinned = -1;
    let fd = -1;
    try {
      // The folder belongs to the user of the process, also where its files belong to root (proc_pid_environ(5)).
      if (statSync(`/proc/${pid}`).uid !== uid) return undefined;
      pinned = openSync(`/proc/${pid}/fd/${remoteFd}`, O_PATH);
      const path = `/proc/self/fd/${pinned}`;
      if (!readlinkSync(path).startsWith(`/memfd:${NAME}`)) return undefined;
      const stats = fstatSync(pinned);
      if (stats.uid !== uid || stats.size !== bytes) return undefined;
      fd = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
      if ((lib.fcntl(fd, F_GET_SEALS, 0) & SEALS) !== SEALS) return undefined;
      return new Segment(lib, map(lib, fd, bytes), bytes, -1);
    } catch {
      return undefined; // It has ended, has a lease, or is of another PID namespace.
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
