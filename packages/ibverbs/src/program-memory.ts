/** Opens the memory of a program: by process_vm_readv(2), or by the descriptor that the program has sent. */

import { closeSync } from 'node:fs';
import { RoceError } from 'rocev2/internal/core';
import type { AddressSpace } from './address-space.js';
import { DescriptorMemory } from './descriptor-memory.js';
import { ProcessMemory } from './process-memory.js';

/** `address`: where the program has its token. Takes over the descriptor. Throws ERR_ROCE_UNSUPPORTED. */
export function openMemory(pid: number, fd: number | undefined, address: number, token: number): AddressSpace {
  const found = new BigUint64Array(new ArrayBuffer(8));
  const reaches = (memory: AddressSpace) =>
    memory.read(address, found.byteLength, new Uint8Array(found.buffer), 0) && found[0] === BigInt(token);
  const byCalls = new ProcessMemory(pid);
  if (reaches(byCalls)) {
    if (fd !== undefined) closeSync(fd);
    return byCalls;
  }
  const byDescriptor = fd === undefined ? undefined : new DescriptorMemory(fd);
  if (byDescriptor !== undefined && reaches(byDescriptor)) return byDescriptor;
  byDescriptor?.close();
  throw new RoceError('ERR_ROCE_UNSUPPORTED', `the memory of process ${pid} cannot be accessed`);
}
