/**
 * One queue pair of ours and one of rigverbs in the guest, each with a list of operations; `rocev2-verbs.js` is our program, and
 * either may be the requester.
 */
import { fileURLToPath } from 'node:url';
import type { RunningCommand } from './command.js';
import type { Rig } from './rig.js';

const PROGRAM = fileURLToPath(new URL('rocev2-verbs.js', import.meta.url));
const TCP_PORT = 9000;

/** What one side is to do. Options and operations as in rigverbs' usage text. */
export interface VerbsTask {
  readonly options?: string;
  readonly operations: string;
}

export interface VerbsPlan {
  /** Ours. Client: we make the requests. */
  readonly role: 'client' | 'server';
  readonly family: 4 | 6;
  /** Options of both sides. */
  readonly options?: string;
  readonly requester: VerbsTask;
  readonly responder: VerbsTask;
  /** Fault rules of our device. */
  readonly faults?: string;
  /** After the two programs have started. */
  readonly meanwhile?: () => Promise<void>;
}

/** A line `SC id=0 status=0(success)` or `RC id=...`, by field. */
export type Completion = Readonly<Record<string, string>> & { readonly status: number };

/** What a program printed, and how it ended. */
export interface VerbsOutcome {
  readonly exitCode: number;
  readonly sends: readonly Completion[];
  readonly receives: readonly Completion[];
  /** FNV-1a of the buffer, of each `sum`. */
  readonly sums: readonly string[];
  /** Of each window that was bound. */
  readonly keys: readonly string[];
  /** Hex, of each `dump`. */
  readonly dumps: readonly string[];
  /** Ours only: the device's counters. */
  readonly counters: Readonly<Record<string, number>>;
  /** All of it, for messages. */
  readonly text: string;
}

export interface VerbsResult {
  readonly requester: VerbsOutcome;
  readonly responder: VerbsOutcome;
  readonly ours: VerbsOutcome;
  readonly theirs: VerbsOutcome;
}

/** Runs both sides to their ends, whatever these are. */
export async function runVerbs(rig: Rig, plan: VerbsPlan): Promise<VerbsResult> {
  const [ourTask, theirTask] =
    plan.role === 'client' ? [plan.requester, plan.responder] : [plan.responder, plan.requester];
  const us = startOurs(rig, plan, ourTask);
  const { ip4, ip6 } = rig.hostSide;
  const host = plan.family === 4 ? ip4 : `[${ip6}]`;
  const rigverbs = `rigverbs -${plan.family} ${words(plan, theirTask)} -c ${host}:${TCP_PORT} ${theirTask.operations}`;
  const [theirResult] = await Promise.all([rig.exec(rigverbs, { timeoutMs: 100_000 }), plan.meanwhile?.()]);
  const theirs = outcomeOf(theirResult);
  const ours = outcomeOf(await us.wait(100_000));
  return plan.role === 'client'
    ? { requester: ours, responder: theirs, ours, theirs }
    : { requester: theirs, responder: ours, ours, theirs };
}

function startOurs(rig: Rig, plan: VerbsPlan, task: VerbsTask): RunningCommand {
  const { ip4, ip6 } = rig.hostSide;
  const faults = plan.faults === undefined ? [] : ['--loss', plan.faults];
  const address = ['--address', plan.family === 4 ? ip4 : ip6];
  const rest = `${words(plan, task)} -l ${TCP_PORT} ${task.operations}`.trim().split(/\s+/);
  return rig.host([process.execPath, PROGRAM, ...address, ...faults, ...rest]);
}

function words(plan: VerbsPlan, task: VerbsTask): string {
  return `${plan.options ?? ''} ${task.options ?? ''}`;
}

function outcomeOf({ exitCode, stdout, stderr }: { exitCode: number; stdout: string; stderr: string }): VerbsOutcome {
  const lines = stdout.trim().split('\n');
  const after = (word: string) => lines.filter((line) => line.startsWith(word)).map((line) => line.slice(word.length));
  return {
    exitCode,
    sends: after('SC ').map(completionOf),
    receives: after('RC ').map(completionOf),
    sums: after('SUM '),
    keys: after('KEY '),
    dumps: lines.filter((line) => /^([0-9a-f]{2})+$/.test(line)),
    counters: JSON.parse(after('COUNTERS ')[0] ?? '{}'),
    text: `exit code ${exitCode}\n${stdout}${stderr}`,
  };
}

function completionOf(text: string): Completion {
  const withoutReason = text.replace(/\([^)]*\)/, '');
  const fields = Object.fromEntries(withoutReason.split(' ').map((field) => field.split('=')));
  return { ...fields, status: Number(fields.status) };
}

/** FNV-1a of the first bytes of a buffer after `fill:SEED`. */
export function fillSum(bytes: number, seed: number): string {
  let hash = 2166136261;
  for (let i = 0; i < bytes; i++) hash = Math.imul(hash ^ ((7 * i + seed) & 0xff), 16777619);
  return (hash >>> 0).toString(16).padStart(8, '0');
}
