/**
 * C library functions through koffi (optional; Linux only). Pointers are numbers, which koffi converts fastest, and
 * structures are laid out by hand. A number does not keep its memory alive: the caller of {@link LibC.addressOf} must
 * hold the buffer while the kernel may use the address.
 */

import { endianness } from 'node:os';
import { isMainThread } from 'node:worker_threads';
import { RoceError } from '../core/errors.js';
import { nativeFileOf, requirePackage } from '../core/packages.js';

/** A call that fails returns -1; {@link LibC.errno} has the reason. */
export interface LibC {
  socket(family: number, type: number, protocol: number): number;
  setsockopt(fd: number, level: number, option: number, value: Uint8Array, length: number): number;
  getsockopt(fd: number, level: number, option: number, value: Uint8Array, length: Uint8Array): number;
  getsockname(fd: number, address: Uint8Array, length: Uint8Array): number;
  bind(fd: number, address: Uint8Array, length: number): number;
  if_nametoindex(name: string): number;
  connect(fd: number, address: Uint8Array, length: number): number;
  close(fd: number): number;
  eventfd(initial: number, flags: number): number;
  read(fd: number, address: number, length: number): number;
  write(fd: number, address: number, length: number): number;
  sendmmsg(fd: number, messages: number, count: number, flags: number): number;
  recvmmsg(fd: number, messages: number, count: number, flags: number, timeout: number): number;
  memfd_create(name: string, flags: number): number;
  fcntl(fd: number, command: number, argument: number): number;
  mmap(address: number, length: number, protection: number, flags: number, fd: number, offset: number): number;
  munmap(address: number, length: number): number;
  madvise(address: number, length: number, advice: number): number;
  ppoll(fds: number, count: number, timeout: number, signals: number): number;
  /**
   * Lets the event loop of this thread poll a descriptor (uv_poll_t): `callback` runs in each of its rounds that finds
   * it readable. A negative status is an error of the descriptor, and the last call.
   */
  pollOnLoop(fd: number, callback: (status: number) => void): LoopPoll;
  /** Arrays must be made over an ArrayBuffer, which never moves. */
  addressOf(bytes: Uint8Array): number;
  view(address: number, length: number): ArrayBuffer;
  errno(): number;
}

export interface LoopPoll {
  start(callback: (status: number) => void): void;
  close(): void;
}

const KOFFI = `@koromix/koffi-linux-${process.arch}`;
const RTLD_LAZY_NODELETE = 0x1 | 0x1000;

let loaded: LibC | string | undefined;

/** @internal Published types do not name those of koffi, which programs have not installed. */
export function koffiPackage(): typeof import('koffi') {
  return requirePackage(KOFFI);
}

/** A function of a shared library. `declaration`: its signature in C. */
export function nativeFunction(
  library: string,
  declaration: string,
): (...values: ReadonlyArray<number | Uint8Array>) => unknown {
  return koffiPackage().load(library).func(declaration);
}

export function libC(): LibC | string {
  loaded ??= load();
  return loaded;
}

function load(): LibC | string {
  if (process.platform !== 'linux') return `socket options are set on Linux only, this is ${process.platform}`;
  try {
    const koffi = koffiPackage();
    // The structures are laid out for these machines: x64, arm64, and most others that run Node.
    if (koffi.sizeof('void *') !== 8 || endianness() !== 'LE')
      return 'structures are known for 64-bit little-endian only';
    const lib = koffi.load(null);
    const memcpy = lib.func('uintptr_t memcpy(void *, void *, size_t)');
    const fcntl = lib.func('int fcntl(int, int, ...)');
    return {
      socket: lib.func('int socket(int, int, int)') as LibC['socket'],
      setsockopt: lib.func('int setsockopt(int, int, int, const void *, uint32_t)') as LibC['setsockopt'],
      getsockopt: lib.func('int getsockopt(int, int, int, void *, void *)') as LibC['getsockopt'],
      getsockname: lib.func('int getsockname(int, void *, void *)') as LibC['getsockname'],
      bind: lib.func('int bind(int, const void *, uint32_t)') as LibC['bind'],
      if_nametoindex: lib.func('uint if_nametoindex(const char *)') as LibC['if_nametoindex'],
      connect: lib.func('int connect(int, const void *, uint32_t)') as LibC['connect'],
      close: lib.func('int close(int)') as LibC['close'],
      eventfd: lib.func('int eventfd(uint, int)') as LibC['eventfd'],
      read: lib.func('long read(int, uintptr_t, size_t)') as LibC['read'],
      write: lib.func('long write(int, uintptr_t, size_t)') as LibC['write'],
      sendmmsg: lib.func('int sendmmsg(int, uintptr_t, uint, int)') as LibC['sendmmsg'],
      recvmmsg: lib.func('int recvmmsg(int, uintptr_t, uint, int, uintptr_t)') as LibC['recvmmsg'],
      memfd_create: lib.func('int memfd_create(const char *, uint)') as LibC['memfd_create'],
      fcntl: (fd, command, argument) => fcntl(fd, command, 'int', argument) as number,
      mmap: lib.func('intptr_t mmap(uintptr_t, size_t, int, int, int, int64_t)') as LibC['mmap'],
      munmap: lib.func('int munmap(uintptr_t, size_t)') as LibC['munmap'],
      madvise: lib.func('int madvise(uintptr_t, size_t, int)') as LibC['madvise'],
      ppoll: lib.func('int ppoll(uintptr_t, ulong, uintptr_t, uintptr_t)') as LibC['ppoll'],
      pollOnLoop: (fd, callback) => {
        if (!isKeptLoaded) keepLoaded(lib.func('uintptr_t dlopen(const char *, int)') as DlOpen);
        // Its types name the events alone; what it passes first is the status.
        return (koffi.node.poll as unknown as LibC['pollOnLoop'])(fd, callback);
      },
      addressOf: (bytes) => memcpy(bytes, bytes, 0) as number,
      view: (address, length) => koffi.view(address, length),
      errno: () => koffi.errno(),
    };
  } catch (error) {
    return (error as Error).message;
  }
}

type DlOpen = (path: string, flags: number) => number;

let isKeptLoaded = isMainThread;

/**
 * A thread that ends with an open handle closes it by a function of koffi, after Node has let go of koffi itself. So
 * the code has to stay, even where no other thread has it.
 */
function keepLoaded(dlopen: DlOpen): void {
  const path = nativeFileOf(KOFFI);
  if (path === undefined || dlopen(path, RTLD_LAZY_NODELETE) === 0) {
    throw new RoceError(
      'ERR_ROCE_UNSUPPORTED',
      `${KOFFI} cannot be kept loaded in a thread`,
      'use the node:dgram port',
    );
  }
  isKeptLoaded = true;
}
