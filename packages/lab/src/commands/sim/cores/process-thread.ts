/**
 * The thread of one logical process: takes a {@link LogicalProcessTask}, posts a {@link LogicalProcessMessage} each
 * step and one at the end.
 */

import { setImmediate } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { NS_PER_S } from 'rocev2/internal/core';
import { loadExtensions, nowNs } from 'rocev2/internal/driver';
import { divide, lookaheadNs } from '../../../sim/logical-process.js';
import { factsOf, type LogicalProcessFacts } from '../../../sim/scenario/facts.js';
import { FlowEnds } from '../../../sim/scenario/flow-ends.js';
import { STEPS } from '../../../sim/scenario/run-scenario.js';
import { ScenarioRun } from '../../../sim/scenario/scenario-run.js';
import type { Scenario } from '../../../sim/scenario/schema.js';
import { topologyOf } from '../../../sim/scenario/topology-of.js';
import { FrameRing, type RingMemory } from './frame-ring.js';
import { Meeting, type MeetingMemory } from './meeting.js';

/** The parameters of the thread. */
export interface LogicalProcessTask {
  /** What is run. */
  readonly scenario: Scenario;
  readonly extensions: readonly string[];
  /** Its number, from 0. */
  readonly me: number;
  /** How many there are. */
  readonly processes: number;
  readonly meeting: MeetingMemory;
  readonly rings: ReadonlyArray<readonly RingMemory[]>;
  readonly ended: SharedArrayBuffer;
  /** What the logical processes tell each other of flows between them. */
  readonly ends: SharedArrayBuffer;
  readonly stop: SharedArrayBuffer;
}

export type LogicalProcessMessage =
  | { readonly kind: 'progress'; readonly done: number }
  | { readonly kind: 'end'; readonly facts: LogicalProcessFacts; readonly work: LogicalProcessWork };

/** What a logical process has done, in real time. */
export interface LogicalProcessWork {
  /** From when all logical processes were ready to the end. */
  readonly seconds: number;
  /** Of these, waiting for other logical processes. */
  readonly waitedSeconds: number;
  readonly meetings: number;
}

const NEVER = Number.POSITIVE_INFINITY;
const ASKED = 0;
const DECIDED = 1;

parentPort!.postMessage(await runLogicalProcess(workerData as LogicalProcessTask));

async function runLogicalProcess({
  scenario,
  extensions,
  me,
  processes,
  meeting: memory,
  rings,
  ended,
  ends: endsMemory,
  stop,
}: LogicalProcessTask): Promise<LogicalProcessMessage> {
  await loadExtensions(extensions);
  const topology = topologyOf(scenario.topology);
  const processOf = divide(topology, processes);
  const aheadNs = lookaheadNs(topology.links, processOf);
  const ends = [...topology.links].flatMap(({ a, b }) => [b, a]);
  let sentNs = NEVER;
  const run: ScenarioRun = await ScenarioRun.prepare(
    scenario,
    {},
    {
      owns: (node) => processOf.get(node) === me,
      departureOf: (cable) => {
        const to = processOf.get(ends[cable])!;
        return (arrivalNs, bytes, offset, length) => {
          if (arrivalNs < sentNs) sentNs = arrivalNs;
          outgoing[to].write(cable, arrivalNs, bytes, offset, length);
        };
      },
    },
    new FlowEnds(endsMemory),
  );
  const { storage } = run.network.pool;
  const outgoing = rings[me].map((ring) => new FrameRing(ring, storage, () => onFull()));
  const incoming = rings.filter((_, from) => from !== me).map((written) => new FrameRing(written[me], storage));
  const take: ScenarioRun['deliver'] = (cable, arrivalNs, bytes, offset, length) =>
    run.deliver(cable, arrivalNs, bytes, offset, length);
  const receive = (): void => {
    for (const ring of incoming) ring.readAll(take);
  };
  const meeting = new Meeting(memory, me, nowNs, receive);
  const onFull = (): void => {
    meeting.throwIfAborted();
    receive();
  };
  const endedFlows = new Uint8Array(ended);
  const stopping = new Int32Array(stop);
  run.start();
  meeting.meet(0);
  const startedNs = nowNs();
  meeting.waitedNs = 0;
  for (let step = 1; step <= STEPS; step++) {
    const untilNs = (scenario.duration * step) / STEPS;
    await run.connectUntil(untilNs);
    for (;;) {
      const firstNs = meeting.meet(Math.min(run.nextNs, sentNs));
      sentNs = NEVER;
      receive();
      if (firstNs > untilNs) break;
      run.runBefore(firstNs + aheadNs, untilNs);
    }
    run.pass(untilNs);
    await setImmediate();
    run.markEnded(endedFlows);
    run.tellEnds();
    if (me === 0) {
      parentPort!.postMessage({ kind: 'progress', done: step / STEPS } satisfies LogicalProcessMessage);
      stopping[DECIDED] = Atomics.load(stopping, ASKED);
    }
    meeting.meet(0);
    if (stopping[DECIDED] !== 0 || endedFlows.every((flag) => flag !== 0)) break;
  }
  const work = {
    seconds: (nowNs() - startedNs) / NS_PER_S,
    waitedSeconds: meeting.waitedNs / NS_PER_S,
    meetings: meeting.meetings,
  };
  return { kind: 'end', facts: factsOf(run), work };
}
