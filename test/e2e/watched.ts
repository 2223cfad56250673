/** What running programs tell of themselves, as `rocev2 estats` and Prometheus hear it: how a test knows that one is in the middle of its work. */

import { findPrograms } from '../../packages/command/src/programs/program-client.js';
import type { WatchedDocument } from '../../packages/command/src/programs/watched.js';
import { eventually } from '../support/eventually.js';
import type { Program } from './executable.js';

/** `GET /metrics` of a program with `--estats-http`; empty while it does not listen yet. */
export async function metricsOf(http: string): Promise<string> {
  try {
    return await (await fetch(`http://${http}/metrics`)).text();
  } catch {
    return '';
  }
}

/** Resolves when the endpoint with `--estats-http` there has completed work. */
export function underLoad(http: string): Promise<void> {
  return eventually(async () => /^roce_op_latency_seconds_count\{.*\} [1-9]/m.test(await metricsOf(http)));
}

/** What a program with `--estats` tells now; undefined when it does not (yet). */
export async function documentOf({ process: { pid } }: Program): Promise<WatchedDocument | undefined> {
  return (await findPrograms(1)).find(({ document }) => document.pid === pid)?.document;
}
