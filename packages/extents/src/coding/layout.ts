/**
 * Where the bytes of an extent are in its fragments: data fragment k has the k-th part of them, in whole blocks, with
 * zeros at the end.
 */

import type { ExtentOrigin } from '../metadata-schema.js';
import { BLOCK_BYTES } from '../record.js';
import { type CodeName, erasureCode } from './erasure-code.js';

/**
 * One fragment. `making` distinguishes it from an identical one of another attempt: each can be deleted without the
 * other.
 */
export interface FragmentId {
  /** Number of its extent. */
  readonly extent: number;
  /** Which one of the code, from 0. */
  readonly fragment: number;
  /** Which attempt has made it. */
  readonly making: number;
}

/** Parameters that determine the bytes of a fragment, together with the extent. */
export interface FragmentShape {
  /** The code that made the fragments. */
  readonly code: CodeName;
  /** Bytes of records in the extent. */
  readonly length: number;
  /** The stream that the extent was opened for. */
  readonly of?: ExtentOrigin | undefined;
}

export function fragmentKey({ extent, fragment, making }: FragmentId): string {
  return `${extent}-${fragment}-${making}`;
}

export function fragmentBlocks({ code, length }: FragmentShape): number {
  return Math.ceil(length / (erasureCode(code).data * BLOCK_BYTES));
}

export function fragmentBytes(shape: FragmentShape): number {
  return fragmentBlocks(shape) * BLOCK_BYTES;
}

export interface FragmentRange {
  readonly fragment: number;
  readonly first: number;
  readonly count: number;
}

export function rangesOf(shape: FragmentShape, from: number, to: number): { at: number; ranges: FragmentRange[] } {
  const each = fragmentBlocks(shape);
  const begin = Math.floor(from / BLOCK_BYTES);
  const end = Math.ceil(to / BLOCK_BYTES);
  const ranges: FragmentRange[] = [];
  for (let block = begin; block < end; ) {
    const first = block % each;
    const count = Math.min(each - first, end - block);
    ranges.push({ fragment: Math.floor(block / each), first, count });
    block += count;
  }
  return { at: begin * BLOCK_BYTES, ranges };
}

export function* piecesOf(first: number, count: number, max: number): Generator<{ first: number; count: number }> {
  for (let at = first; at < first + count; at += max) yield { first: at, count: Math.min(max, first + count - at) };
}
