import { RoceError } from '../../core/errors.js';
import { eventProblem } from './events.js';

/** One event of a trace. */
export interface TraceRecord {
  /** Since the trace began. */
  readonly timeMs: number;
  /** A name of the catalogue. */
  readonly name: string;
  /** Its fields, as the catalogue declares them. */
  readonly data: Readonly<Record<string, string | number | boolean>>;
}

export function isTrace(bytes: Uint8Array): boolean {
  return new TextDecoder().decode(bytes.subarray(0, 16)) === '{"qlog_version":';
}

export function* readTrace(text: string): Generator<TraceRecord, void, undefined> {
  const lines = text.split('\n');
  lines.pop(); // After the last line end there is nothing, or an incomplete record.
  for (const [i, line] of lines.entries()) {
    if (i === 0) continue;
    const record = parse(line);
    const problem = record === undefined ? 'that is not a record' : eventProblem(record.name, record.data);
    if (problem !== undefined) throw new RoceError('ERR_ROCE_MALFORMED', `line ${i + 1}: ${problem}`);
    yield record!;
  }
}

function parse(line: string): TraceRecord | undefined {
  try {
    const { time, name, data } = JSON.parse(line);
    const isRecord = typeof time === 'number' && typeof name === 'string' && typeof data === 'object' && data !== null;
    return isRecord ? { timeMs: time, name, data } : undefined;
  } catch {
    return undefined;
  }
}
