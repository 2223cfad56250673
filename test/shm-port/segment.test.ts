/** Whose memory a process opens when it is offered a ring: its own user's alone, and without waiting for anybody. */

import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, fchownSync, ftruncateSync, openSync } from 'node:fs';
import process from 'node:process';
import { afterEach, describe, expect, it } from 'vitest';
import { batchedUdpAvailable } from '../../src/dgram-ext/index.js';
import { type LibC, libC } from '../../src/dgram-ext/libc.js';
import { Segment } from '../../src/port/shm/segment.js';

const BYTES = 65_536;
const NOBODY = 65_534;
const MFD_CLOEXEC_ALLOW_SEALING = 3;
const F_ADD_SEALS = 1033;
const SEALS = 1 | 2 | 4;
const F_SETSIG = 10;
const F_SETLEASE = 1024;
const F_WRLCK = 1;
/** Ignored by default, unlike SIGIO, which the kernel sends to the holder of a lease otherwise. */
const SIGURG = 23;

const closing: Array<() => void> = [];
afterEach(() => {
  for (const close of closing.splice(0).reverse()) close();
});

describe.skipIf(batchedUdpAvailable() !== undefined)('an offered ring (needs koffi on Linux)', () => {
  const lib = libC() as LibC;

  function offered(): Segment {
    const segment = Segment.create(lib, BYTES);
    closing.push(() => segment.close());
    return segment;
  }

  function isOpened(pid: number, fd: number): boolean {
    const segment = Segment.open(lib, pid, fd, BYTES);
    segment?.close();
    return segment !== undefined;
  }

  it('of the same user is opened; one of another length is not', () => {
    const { fd } = offered();
    expect(isOpened(process.pid, fd)).toBe(true);
    expect(Segment.open(lib, process.pid, fd, 2 * BYTES)).toBeUndefined();
  });

  it('whose size could change is not opened', () => {
    const fd = lib.memfd_create('rocev2-ring', MFD_CLOEXEC_ALLOW_SEALING);
    closing.push(() => closeSync(fd));
    ftruncateSync(fd, BYTES);
    expect(isOpened(process.pid, fd)).toBe(false);
    lib.fcntl(fd, F_ADD_SEALS, SEALS);
    expect(isOpened(process.pid, fd)).toBe(true);
  });

  describe.runIf(process.geteuid?.() === 0)('seen by root, for whom the kernel opens everything', () => {
    it('is not opened if its memory belongs to another user', () => {
      const { fd } = offered();
      fchownSync(fd, NOBODY, NOBODY);
      expect(isOpened(process.pid, fd)).toBe(false);
      fchownSync(fd, 0, 0);
      expect(isOpened(process.pid, fd)).toBe(true);
    });

    it('is not opened if its process belongs to another user', () => {
      const { fd } = offered();
      const holder = (uid: number): ChildProcess => {
        const child = spawn('sleep', ['60'], { uid, stdio: ['ignore', 'ignore', 'ignore', fd] });
        closing.push(() => child.kill('SIGKILL'));
        return child;
      };
      expect(isOpened(holder(NOBODY).pid!, 3)).toBe(false);
      expect(isOpened(holder(0).pid!, 3)).toBe(true);
    });
  });

  it('with a write lease, which blocks open(2) for 45 s, is refused at once', () => {
    const first = lib.memfd_create('rocev2-ring', MFD_CLOEXEC_ALLOW_SEALING);
    ftruncateSync(first, BYTES);
    lib.fcntl(first, F_ADD_SEALS, SEALS);
    const fd = openSync(`/proc/self/fd/${first}`, 'r+');
    closing.push(() => closeSync(fd));
    closeSync(first); // The kernel gives a lease only for the only open file.
    lib.fcntl(fd, F_SETSIG, SIGURG);
    expect(lib.fcntl(fd, F_SETLEASE, F_WRLCK)).toBe(0);
    expect(isOpened(process.pid, fd)).toBe(false); // Where open(2) waits, it succeeds in the end.
  });
});
