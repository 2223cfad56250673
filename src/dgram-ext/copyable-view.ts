/**
 * A view of shared memory without the name "shared": V8 copies to and from a SharedArrayBuffer word by word with
 * relaxed atomics, three to five times slower than memmove. A NIC needs no such guarantee.
 */

import { rememberShown } from '../core/shared-buffers.js';
import { libC } from './libc.js';

export function copyableView(memory: SharedArrayBuffer): ArrayBufferLike {
  const lib = libC();
  if (typeof lib === 'string' || memory.byteLength === 0) return memory;
  const view = lib.view(lib.addressOf(new Uint8Array(memory)), memory.byteLength);
  rememberShown(view, memory);
  return view;
}
