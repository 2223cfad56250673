/**
 * Fragments computed by ISA-L (`libisal.so.2`, Debian's libisal2) through koffi: `ec_init_tables` makes 32 bytes of
 * each factor, `ec_encode_data` multiplies 16 to 64 bytes at a time.
 */

import { RoceError } from 'rocev2/internal/core';
import { libC, nativeFunction } from 'rocev2/internal/dgram-ext';
import { cleanVectorState } from 'rocev2/internal/driver';
import { type Combine, portableCombine } from '../coding/combiner.js';

const LIBRARY = 'libisal.so.2';
const TABLE_BYTES = 32;
const POINTER_BYTES = 8;
const SHORT_BYTES = 256;

export function isaLCombine(): Combine {
  const lib = libC();
  if (typeof lib === 'string') throw new RoceError('ERR_ROCE_UNSUPPORTED', `${LIBRARY} cannot be called: ${lib}`);
  const initTables = nativeFunction(LIBRARY, 'void ec_init_tables(int, int, const void *, void *)');
  const encodeData = nativeFunction(
    LIBRARY,
    'void ec_encode_data(int, int, int, const void *, const void *, const void *)',
  );
  /** They hold as long as the arrays do, which the caller has. */
  const pointersOf = (arrays: readonly Uint8Array[]) => {
    const pointers = Buffer.alloc(POINTER_BYTES * arrays.length);
    for (const [k, bytes] of arrays.entries())
      pointers.writeBigUInt64LE(BigInt(lib.addressOf(bytes)), POINTER_BYTES * k);
    return pointers;
  };
  return (rows, sources, outs) => {
    const [{ length }] = outs;
    if (length < SHORT_BYTES) return portableCombine(rows, sources, outs);
    const tables = Buffer.alloc(TABLE_BYTES * rows.length * sources.length);
    initTables(sources.length, rows.length, Buffer.concat(rows), tables);
    encodeData(length, sources.length, rows.length, tables, pointersOf(sources), pointersOf(outs));
    cleanVectorState();
  };
}
