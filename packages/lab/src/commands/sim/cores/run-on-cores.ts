/**
 * Runs one scenario on several cores: its network is divided by racks, each logical process has a thread of this
 * process. The result is that of one core, see docs/lab.md.
 */

import { Worker } from 'node:worker_threads';
import { SeededRandom } from 'rocev2/internal/core';
import { loadedExtensions } from 'rocev2/internal/driver';
import { divide } from '../../../sim/logical-process.js';
import { FlowEnds } from '../../../sim/scenario/flow-ends.js';
import { planFlows } from '../../../sim/scenario/flow-plan.js';
import { mergeFacts } from '../../../sim/scenario/merge-facts.js';
import type { ScenarioResult } from '../../../sim/scenario/result.js';
import { report } from '../../../sim/scenario/scenario-report.js';
import type { Scenario } from '../../../sim/scenario/schema.js';
import { topologyOf } from '../../../sim/scenario/topology-of.js';
import { newRingMemory } from './frame-ring.js';
import { abort, newMeetingMemory } from './meeting.js';
import type { LogicalProcessMessage, LogicalProcessTask, LogicalProcessWork } from './process-thread.js';

/**
 * Of all rings that a logical process reads. Links between two parts of a network carry less in a window of a
 * microsecond.
 */
const RING_BYTES = 16 * 2 ** 20;

interface CoresOptions {
  readonly signal: AbortSignal;
  readonly onProgress: (done: number) => void;
}

interface CoresResult {
  readonly result: ScenarioResult;
  /** Of each logical process. */
  readonly work: readonly LogicalProcessWork[];
}

type LogicalProcessEnd = Extract<LogicalProcessMessage, { kind: 'end' }>;

export async function runOnCores(scenario: Scenario, { signal, onProgress }: CoresOptions): Promise<CoresResult> {
  const topology = topologyOf(scenario.topology);
  const processes = scenario.cores!;
  divide(topology, processes);
  const numbers = Array.from({ length: processes }, (_, i) => i);
  const meeting = newMeetingMemory(processes);
  const flows = planFlows(scenario, topology, new SeededRandom(scenario.seed)).length;
  const stop = new SharedArrayBuffer(2 * 4);
  const task: Omit<LogicalProcessTask, 'me'> = {
    scenario,
    extensions: loadedExtensions(),
    processes,
    meeting,
    rings: numbers.map((from) => numbers.map((to) => newRingMemory(from === to ? 0 : RING_BYTES / processes))),
    ended: new SharedArrayBuffer(flows),
    ends: new SharedArrayBuffer(FlowEnds.bytesFor(flows)),
    stop,
  };
  const ask = () => Atomics.store(new Int32Array(stop), 0, 1);
  if (signal.aborted) ask();
  signal.addEventListener('abort', ask, { once: true });
  const threads = numbers.map(
    (me) =>
      new Worker(new URL('./process-thread.js', import.meta.url), {
        workerData: { ...task, me } satisfies LogicalProcessTask,
      }),
  );
  try {
    const ends = await Promise.all(threads.map((thread) => endOf(thread, onProgress)));
    const facts = mergeFacts(
      ends.map((end) => end.facts),
      topology,
    );
    const work = ends.map((end) => end.work);
    const wallSeconds = Math.max(...work.map(({ seconds }) => seconds));
    return { result: report({ scenario, topology, facts, wallSeconds }), work };
  } finally {
    signal.removeEventListener('abort', ask);
    abort(meeting);
    await Promise.all(threads.map((thread) => thread.terminate()));
  }
}

function endOf(thread: Worker, onProgress: (done: number) => void): Promise<LogicalProcessEnd> {
  return new Promise((resolve, reject) => {
    thread.on('message', (message: LogicalProcessMessage) => {
      if (message.kind === 'end') resolve(message);
      else onProgress(message.done);
    });
    thread.once('error', reject);
    thread.once('exit', (code) => reject(new Error(`a part of the run ended with code ${code}`)));
  });
}
