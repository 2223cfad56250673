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
  /** Where our NIC runs (default inline), and its fault rules. */
  readonly engine?: 'inline' | 'worker';
  readonly faults?: string;
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
  const us = startOurVerbs(rig, plan.family, words(plan, ourTask), plan);
  const theirs = verbsOutcome(
    await rig.exec(rigverbsTowardsUs(rig, plan.family, words(plan, theirTask)), { timeoutMs: 100_000 }),
  );
  const ours = verbsOutcome(await us.wait(100_000));
  return plan.role === 'client'
    ? { requester: ours, responder: theirs, ours, theirs }
    : { requester: theirs, responder: ours, ours, theirs };
}

/** Our side alone, waiting for rigverbs to connect; `words` are options and operations. */
export function startOurVerbs(
  rig: Rig,
  family: 4 | 6,
  words: string,
  { engine = 'inline', faults }: Pick<VerbsPlan, 'engine' | 'faults'> = {},
): RunningCommand {
  const { ip4, ip6 } = rig.hostSide;
  const device = ['--address', family === 4 ? ip4 : ip6, '--engine', engine];
  const rules = faults === undefined ? [] : ['--loss', faults];
  const rest = [...device, ...rules, '-l', `${TCP_PORT}`, ...words.trim().split(/\s+/)];
  return rig.host([process.execPath, PROGRAM, ...rest]);
}

/** The command that connects to our side. */
export function rigverbsTowardsUs(rig: Rig, family: 4 | 6, words: string): string {
  const { ip4, ip6 } = rig.hostSide;
  return `rigverbs -${family} -c ${family === 4 ? ip4 : `[${ip6}]`}:${TCP_PORT} ${words}`;
}

function words(plan: VerbsPlan, { options = '', operations }: VerbsTask): string {
  return `${plan.options ?? ''} ${options} ${operations}`;
}

export function verbsOutcome({
  exitCode,
  stdout,
  stderr,
}: {
  exitCode: number;
  stdout: string;
  stderr: string;
}): VerbsOutcome {
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
