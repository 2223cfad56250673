import { NS_PER_MS } from 'rocev2/internal/core';
import { type CodeName, erasureCode } from '../coding/erasure-code.js';

export interface CodeOptions {
  readonly code: CodeName | 'none';
  /** Time between seal and code, nanoseconds. */
  readonly codeAfter: number;
}

export function codingOf({ code, codeAfter }: CodeOptions): { code?: CodeName; codeAfterMs: number } {
  return { ...(code !== 'none' && { code }), codeAfterMs: Math.ceil(codeAfter / NS_PER_MS) };
}

export function nodesFor(code: CodeName | 'none'): number {
  return code === 'none' ? 0 : erasureCode(code).total;
}
