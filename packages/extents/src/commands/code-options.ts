/** What a command line says about the code of sealed extents. */

import { NS_PER_MS } from 'rocev2/internal/core';
import { type CodeName, erasureCode } from '../coding/erasure-code.js';

/** Options of commands that run a manager. */
export interface CodeOptions {
  /** Name of the code. */
  readonly code: CodeName | 'none';
  /** Time between seal and code, nanoseconds. */
  readonly codeAfter: number;
}

/** What `serveManager` takes. */
export function codingOf({ code, codeAfter }: CodeOptions): { code?: CodeName; codeAfterMs: number } {
  return { ...(code !== 'none' && { code }), codeAfterMs: Math.ceil(codeAfter / NS_PER_MS) };
}

/** Nodes that a cluster needs for the code: each fragment of an extent is on a node of its own. */
export function nodesFor(code: CodeName | 'none'): number {
  return code === 'none' ? 0 : erasureCode(code).total;
}
