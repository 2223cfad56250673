/**
 * Where a command's words go: results to stdout, progress and diagnostics to stderr, and with --json one document (or JSON lines)
 * on stdout and nothing else there. Colour and drawing only where a person looks: a terminal, and NO_COLOR not set.
 */

import { once } from 'node:events';
import type { Writable } from 'node:stream';
import { SingleBar } from 'cli-progress';
import Table from 'cli-table3';
import picocolors from 'picocolors';
import { wallMs } from '../driver/system-clock.js';
import { documentHead } from './document-head.js';
import type { EventLine, PacketLine, Results } from './documents.js';

/** The environment variables that are looked at. */
export interface CliEnvironment {
  /** Not empty: no colour (no-color.org). */
  readonly NO_COLOR?: string | undefined;
  /** Not empty: colour even where no person looks. */
  readonly FORCE_COLOR?: string | undefined;
  /** `dumb`: no colour. */
  readonly TERM?: string | undefined;
  /** `1`: show stacks. */
  readonly ROCEV2_DEBUG?: string | undefined;
}

/** What a command may use of the process. */
export interface CliIo {
  /** The command line, without node and script. */
  readonly args: readonly string[];
  /** For results. */
  readonly stdout: Writable & { readonly isTTY?: boolean };
  /** For progress and diagnostics. */
  readonly stderr: Writable & { readonly isTTY?: boolean };
  /** The process's environment. */
  readonly env: CliEnvironment;
  /** Aborted by the first Ctrl-C: stop, print what there is, exit 130. */
  readonly interrupted: AbortSignal;
  /** Asks for so long between Ctrl-C and the end of the process, instead of 900 ms: for figures that need the peer. */
  readonly allowAfterInterruption?: (limitMs: number) => void;
}

/** A column of a table. */
export interface Column {
  /** Its heading. */
  readonly title: string;
  /** Numbers stand to the right. */
  readonly align: 'left' | 'right';
}

/** Progress of something long, on stderr where a person looks. */
export interface Progress {
  /** `done` of the total, and a few words. */
  update(done: number, text: string): void;
  /** Takes it off the screen. */
  stop(): void;
}

/** For work that nobody watches. */
export const SILENT_PROGRESS: Progress = { update: () => {}, stop: () => {} };

const NO_BORDERS = Object.fromEntries(
  [
    'top', 'top-mid', 'top-left', 'top-right', 'bottom', 'bottom-mid', 'bottom-left', 'bottom-right',
    'left', 'left-mid', 'mid', 'mid-mid', 'right', 'right-mid',
  ].map((place) => [place, '']),
); // biome-ignore format: one group a line

/** The words of one command. */
export class Output {
  /** The process's streams. */
  readonly io: CliIo;
  /** One document on stdout, and nothing else. */
  readonly json: boolean;
  readonly #startMs = wallMs();
  /** Colours, or functions that do nothing. */
  readonly colors: ReturnType<typeof picocolors.createColors>;

  constructor(
    /** The process's streams. */
    io: CliIo,
    /** One document on stdout, and nothing else. */
    json: boolean,
  ) {
    this.io = io;
    this.json = json;
    this.colors = picocolors.createColors(!json && wantsColor(io));
  }

  /** A line for people on stdout; nothing with --json. */
  line(text = ''): void {
    if (!this.json) this.io.stdout.write(`${text}\n`);
  }

  /** A diagnostic on stderr, with --json too. */
  note(text: string): void {
    this.io.stderr.write(`${text}\n`);
  }

  /** The document of --json, by the name of its schema; nothing without --json. */
  document<Name extends keyof Results>(name: Name, result: Results[Name]): void {
    if (this.json) this.#write({ ...documentHead(name, this.io.args, this.#startMs), ...result });
  }

  /** A line of `decode --json`. */
  jsonLine(line: PacketLine | EventLine): void {
    if (this.json) this.#write(line);
  }

  /** A bigint becomes a decimal string. */
  #write(value: object): void {
    this.io.stdout.write(`${JSON.stringify(value, (_, v) => (typeof v === 'bigint' ? v.toString() : v))}\n`);
  }

  /** A table for people: titles, a rule, rows; columns two spaces apart. Nothing with --json. */
  table(columns: readonly Column[], rows: ReadonlyArray<readonly (string | number)[]>): void {
    if (this.json) return;
    const table = new Table({
      colAligns: columns.map((column) => column.align),
      chars: { ...NO_BORDERS, middle: '  ' },
      style: { head: [], border: [], 'padding-left': 0, 'padding-right': 0 },
    });
    table.push(columns.map((column) => this.colors.bold(column.title)));
    for (const row of rows) table.push(row.map(String));
    const lines = table
      .toString()
      .split('\n')
      .map((text) => text.trimEnd());
    const width = Math.max(...lines.map(visibleWidth));
    lines.splice(1, 0, this.colors.dim('-'.repeat(width)));
    for (const text of lines) this.line(text);
  }

  /** A bar on stderr while a person waits there: it renews itself, with the time so far. Silent when stderr is not a terminal. */
  progress(total: number): Progress {
    return this.#bar(total, '{bar} {percentage}%  {duration_formatted}  {text}');
  }

  /** The same for work whose end is not known: `text`, and the time so far. Ends with the work. */
  async during<T>(text: string, work: Promise<T>): Promise<T> {
    const line = this.#bar(1, '{text}: {duration_formatted}', text);
    try {
      return await work;
    } finally {
      line.stop();
    }
  }

  #bar(total: number, format: string, text = ''): Progress {
    if (this.io.stderr.isTTY !== true) return SILENT_PROGRESS;
    const bar = new SingleBar({
      stream: this.io.stderr as NodeJS.WritableStream,
      format,
      clearOnComplete: true,
      hideCursor: true,
      barsize: 30,
    });
    bar.start(total, 0, { text });
    return { update: (done, text) => bar.update(done, { text }), stop: () => bar.stop() };
  }

  /** Waits until a slow reader of stdout has caught up, so that long output is not held in memory. */
  async drained(): Promise<void> {
    if (this.io.stdout.writableNeedDrain) await once(this.io.stdout, 'drain');
  }
}

function wantsColor({ stdout, env }: CliIo): boolean {
  if (env.NO_COLOR) return false; // https://no-color.org: any value but the empty one
  if (env.FORCE_COLOR) return true;
  return stdout.isTTY === true && env.TERM !== 'dumb';
}

/** Characters a terminal shows, colour codes left out. */
export function visibleWidth(text: string): number {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences begin with one
  return text.replaceAll(/\u001b\[[0-9;]*m/g, '').length;
}
