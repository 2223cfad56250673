/** LIST_META_CONTEXT and SET_META_CONTEXT, with one context: `base:allocation`. */

import { writeU32 } from '../../../core/bytes.js';
import { findExport, type NbdExport } from './nbd-export.js';
import { OptionData } from './option-data.js';
import { BASE_ALLOCATION, REP_ERR_INVALID, REP_ERR_UNKNOWN } from './wire.js';

export const ALLOCATION_CONTEXT_ID = 1;
const QUERIES_MAX = 1024;

export type MetaAnswer<E> =
  | { readonly error: number }
  | { readonly export: E; readonly contexts: readonly Uint8Array[] };

export function answerMetaContext<E extends NbdExport>(
  exports: readonly E[],
  data: Uint8Array,
  isSet: boolean,
): MetaAnswer<E> {
  const option = new OptionData(data);
  const name = option.string();
  const count = option.u32();
  if (name === undefined || count === undefined || count > QUERIES_MAX) return { error: REP_ERR_INVALID };
  const queries = Array.from({ length: count }, () => option.string());
  if (!option.atEnd) return { error: REP_ERR_INVALID };
  const found = findExport(exports, name);
  if (found === undefined) return { error: REP_ERR_UNKNOWN };
  const wanted = isSet
    ? queries.includes(BASE_ALLOCATION)
    : count === 0 || queries.includes(BASE_ALLOCATION) || queries.includes('base:');
  return { export: found, contexts: wanted ? [allocationContext(isSet ? ALLOCATION_CONTEXT_ID : 0)] : [] };
}

function allocationContext(id: number): Uint8Array {
  const name = new TextEncoder().encode(BASE_ALLOCATION);
  const bytes = new Uint8Array(4 + name.length);
  writeU32(bytes, 0, id);
  bytes.set(name, 4);
  return bytes;
}
