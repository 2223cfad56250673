/**
 * The few functions of the C library that node:dgram does not offer, called through koffi (an optional dependency; Linux only).
 *
 * Pointers are numbers: koffi converts those fastest, and every structure is laid out by hand. A number does not keep its memory alive:
 * whoever takes an {@link LibC.addressOf} must hold the buffer for as long as the kernel may use the address.
 */

import { endianness } from 'node:os';
import { isMainThread } from 'node:worker_threads';
import { RoceError } from '../core/errors.js';
import { nativeFileOf, requirePackage } from '../core/packages.js';

/** Functions as in the manual pages, sections 2 and 3. A call that fails returns -1; {@link LibC.errno} says why. */
export interface LibC {
  /** socket(2): a descriptor. */
  socket(family: number, type: number, protocol: number): number;
  /** setsockopt(2) with the bytes of `value`. */
  setsockopt(fd: number, level: number, option: number, value: Uint8Array, length: number): number;
  /** getsockopt(2) into `value`; `length` holds a socklen_t both ways. */
  getsockopt(fd: number, level: number, option: number, value: Uint8Array, length: Uint8Array): number;
  /** getsockname(2) into `address`; `length` holds a socklen_t both ways. */
  getsockname(fd: number, address: Uint8Array, length: Uint8Array): number;
  /** bind(2) to a `struct sockaddr`. */
  bind(fd: number, address: Uint8Array, length: number): number;
  /** if_nametoindex(3): the number of a network interface; 0 when there is none of this name. */
  if_nametoindex(name: string): number;
  /** connect(2) to a `struct sockaddr`. */
  connect(fd: number, address: Uint8Array, length: number): number;
  /** close(2). */
  close(fd: number): number;
  /** eventfd(2): a descriptor. */
  eventfd(initial: number, flags: number): number;
  /** read(2) to memory that stays; bytes read. */
  read(fd: number, address: number, length: number): number;
  /** write(2) from memory that stays; bytes written. */
  write(fd: number, address: number, length: number): number;
  /** sendmmsg(2) of `struct mmsghdr`s; messages sent. */
  sendmmsg(fd: number, messages: number, count: number, flags: number): number;
  /** recvmmsg(2) into `struct mmsghdr`s; messages received. */
  recvmmsg(fd: number, messages: number, count: number, flags: number, timeout: number): number;
  /** memfd_create(2): an anonymous file in memory. */
  memfd_create(name: string, flags: number): number;
  /** fcntl(2) with a number as argument. */
  fcntl(fd: number, command: number, argument: number): number;
  /** mmap(2). -1 when it fails. */
  mmap(address: number, length: number, protection: number, flags: number, fd: number, offset: number): number;
  /** munmap(2). */
  munmap(address: number, length: number): number;
  /** madvise(2). */
  madvise(address: number, length: number, advice: number): number;
  /** Blocks the calling thread. */
  ppoll(fds: number, count: number, timeout: number, signals: number): number;
  /**
   * Lets the event loop of this thread poll a descriptor (uv_poll_t): `callback` runs in each of its rounds that finds it readable. A negative
   * status is an error of the descriptor, and the last call.
   */
  pollOnLoop(fd: number, callback: (status: number) => void): LoopPoll;
  /** Where the first byte of an array stands. Arrays must be made over an ArrayBuffer, which never moves. */
  addressOf(bytes: Uint8Array): number;
  /** An ArrayBuffer over memory that somebody else keeps alive. */
  view(address: number, length: number): ArrayBuffer;
  /** Of the last call that failed in this thread. */
  errno(): number;
}

/** A descriptor that an event loop polls. */
export interface LoopPoll {
  /** Goes on after an error. */
  start(callback: (status: number) => void): void;
  /** Ends it; the descriptor may be closed then. */
  close(): void;
}

const KOFFI = `@koromix/koffi-linux-${process.arch}`;
const RTLD_LAZY_NODELETE = 0x1 | 0x1000;

let loaded: LibC | string | undefined;

/** The package that calls native code. Throws ERR_ROCE_UNSUPPORTED if it cannot be loaded; it can if {@link libC} returns functions. */
export function koffiPackage(): typeof import('koffi') {
  return requirePackage(KOFFI);
}

/** The C library, or a text that says why it cannot be called. Loaded once, on first use. */
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
 * A thread that ends with an open handle closes it by a function of koffi, after Node has let go of koffi itself. So the code has to stay,
 * even where no other thread has it. Throws ERR_ROCE_UNSUPPORTED when it cannot be made to.
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
