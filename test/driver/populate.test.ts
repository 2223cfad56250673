/** Memory of the library's own has its pages before a transfer touches it. */

import { afterEach, describe, expect, it } from 'vitest';
import { koffiPackage, libC } from '../../src/dgram-ext/libc.js';
import { populate } from '../../src/driver/populate.js';
import { Access, openDevice, type RdmaDevice } from '../../src/index.js';

/** Above the largest that glibc takes from memory that was freed before. */
const BYTES = 40 << 20;
const PAGE = 4096;
const lib = libC();

/** The share of pages that are in memory: mincore(2) of the whole pages inside. */
function resident(memory: ArrayBufferLike): number {
  if (typeof lib === 'string') throw new TypeError(lib);
  const mincore = koffiPackage().load(null).func('int mincore(uintptr_t, size_t, void *)');
  const begin = lib.addressOf(new Uint8Array(memory));
  const start = Math.ceil(begin / PAGE) * PAGE;
  const pages = Math.floor((begin + memory.byteLength - start) / PAGE);
  const states = new Uint8Array(pages);
  expect(mincore(start, pages * PAGE, states)).toBe(0);
  return states.reduce((sum, state) => sum + (state & 1), 0) / pages;
}

describe.runIf(typeof lib !== 'string')('the pages of memory', () => {
  const open: RdmaDevice[] = [];

  afterEach(async () => {
    for (const device of open.splice(0)) await device.close();
  });

  it('are not there by themselves', () => {
    expect(resident(new ArrayBuffer(BYTES))).toBeLessThan(0.1);
    expect(resident(new SharedArrayBuffer(BYTES))).toBeLessThan(0.1);
  });

  it('are there when the kernel is asked', () => {
    for (const memory of [new ArrayBuffer(BYTES), new SharedArrayBuffer(BYTES)]) {
      populate(new Uint8Array(memory));
      expect(resident(memory)).toBe(1);
      expect(Buffer.from(memory).equals(Buffer.alloc(BYTES))).toBe(true);
    }
  });

  it('are there when they have to be touched: no native calls, or a kernel that refuses', () => {
    if (typeof lib === 'string') throw new TypeError(lib);
    for (const poor of ['no koffi', { ...lib, madvise: () => -1 }]) {
      const memory = new ArrayBuffer(BYTES);
      populate(new Uint8Array(memory), poor);
      expect(resident(memory)).toBe(1);
    }
  });

  it('are there in what a device allocates, and in a region of its making', async () => {
    const device = await openDevice({ address: '127.0.5.12', udpPort: 0 });
    open.push(device);
    expect(resident(device.allocate(BYTES).buffer)).toBe(1);
    const pd = await device.createPd();
    const region = await pd.regMr(BYTES, Access.LOCAL_WRITE);
    expect(resident(region.bytes.buffer)).toBe(1);
  });

  it('of memory that a program registers stay as they are', async () => {
    const device = await openDevice({ address: '127.0.5.12', udpPort: 0 });
    open.push(device);
    const pd = await device.createPd();
    const own = new Uint8Array(BYTES);
    await pd.regMr(own, Access.LOCAL_WRITE);
    expect(resident(own.buffer)).toBeLessThan(0.1);
  });
});
