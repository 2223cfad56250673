/**
 * Results go to stdout, progress and diagnostics to stderr. With --json, stdout carries one document (or JSON lines)
 * and nothing else. Notes of a server that is ready are lines of a log. Colour and progress bars need a terminal;
 * NO_COLOR disables colour.
 */

import { once } from 'node:events';
import type { Writable } from 'node:stream';
import { SingleBar } from 'cli-progress';
import Table from 'cli-table3';
import picocolors from 'picocolors';
import { wallMs } from 'rocev2/internal/driver';
import type { DocumentKind } from './document.js';
import { documentHead } from './document-head.js';
import { type CliEnvironment, CommandFailure, EXIT_INTERRUPTED } from './exit.js';

export interface CliIo {
  readonly args: readonly string[];
  readonly stdout: Writable & { readonly isTTY?: boolean };
  readonly stderr: Writable & { readonly isTTY?: boolean };
  readonly env: CliEnvironment;
  readonly interrupted: AbortSignal;
  /** Extends the time between Ctrl-C and the end of the process from 900 ms to this, for figures that need the peer. */
  readonly allowAfterInterruption?: (limitMs: number) => void;
}

export interface Column {
  readonly title: string;
  readonly align: 'left' | 'right';
}

export function leftAligned(...titles: string[]): Column[] {
  return titles.map((title) => ({ title, align: 'left' }));
}

export function rightAligned(...titles: string[]): Column[] {
  return titles.map((title) => ({ title, align: 'right' }));
}

export interface Progress {
  update(done: number, text: string): void;
  stop(): void;
}

export const SILENT_PROGRESS: Progress = { update: () => {}, stop: () => {} };

const NO_BORDERS = Object.fromEntries(
  [
    'top', 'top-mid', 'top-left', 'top-right', 'bottom', 'bottom-mid', 'bottom-left', 'bottom-right',
    'left', 'left-mid', 'mid', 'mid-mid', 'right', 'right-mid',
  ].map((place) => [place, '']),
); // biome-ignore format: one group a line

export class Output {
  readonly io: CliIo;
  readonly json: boolean;
  readonly #startMs = wallMs();
  #isLog = false;
  readonly colors: ReturnType<typeof picocolors.createColors>;

  constructor(io: CliIo, json: boolean) {
    this.io = io;
    this.json = json;
    this.colors = picocolors.createColors(!json && wantsColor(io));
  }

  line(text = ''): void {
    if (!this.json) this.io.stdout.write(`${text}\n`);
  }

  note(text: string): void {
    this.#write('info', text);
  }

  /** A note about something that a person should look at. */
  warn(text: string): void {
    this.#write('warning', text);
  }

  /** A server is ready: from now on notes are lines of a log, with time (ISO 8601) and level. */
  ready(text = 'Ctrl-C ends it'): void {
    this.note(text);
    this.#isLog = true;
  }

  #write(level: 'info' | 'warning', text: string): void {
    const head = this.#isLog ? `${new Date(wallMs()).toISOString()} ${level} ` : '';
    this.io.stderr.write(`${head}${text}\n`);
  }

  /** Ends the command with exit code 130 after Ctrl-C. */
  throwIfInterrupted(message?: string): void {
    if (this.io.interrupted.aborted) throw new CommandFailure(EXIT_INTERRUPTED, message);
  }

  /** Prints the document of --json; nothing without --json. */
  document<T extends object>(kind: DocumentKind<T>, result: T): void {
    if (this.json) this.io.stdout.write(this.documentText(kind, result));
  }

  documentText<T extends object>({ name }: DocumentKind<T>, result: T): string {
    return jsonLine({ ...documentHead(name, this.io.args, this.#startMs), ...result });
  }

  /** Prints one of the JSON lines that precede the document. */
  jsonLine<T extends object>(_: DocumentKind<T>, line: T): void {
    if (this.json) this.io.stdout.write(jsonLine(line));
  }

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

  /** A table whose rows appear one by one. `width`: the least one of a column. */
  growingTable(columns: readonly Column[], width: number): (row: readonly (string | number)[]) => void {
    const widths = columns.map(({ title }) => Math.max(title.length, width));
    const lineOf = (cells: readonly string[]) =>
      cells
        .map((cell, i) => (columns[i].align === 'right' ? cell.padStart(widths[i]) : cell.padEnd(widths[i])))
        .join('  ')
        .trimEnd();
    const head = lineOf(columns.map(({ title }) => title));
    this.line(this.colors.bold(head));
    this.line(this.colors.dim('-'.repeat(head.length)));
    return (row) => this.line(lineOf(row.map(String)));
  }

  progress(total: number): Progress {
    return this.#bar(total, '{bar} {percentage}%  {duration_formatted}  {text}');
  }

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

  async drained(): Promise<void> {
    if (this.io.stdout.writableNeedDrain) await once(this.io.stdout, 'drain');
  }
}

function jsonLine(value: object): string {
  return `${JSON.stringify(value, (_, v) => (typeof v === 'bigint' ? v.toString() : v))}\n`;
}

function wantsColor({ stdout, env }: CliIo): boolean {
  if (env.NO_COLOR) return false;
  if (env.FORCE_COLOR) return true;
  return stdout.isTTY === true && env.TERM !== 'dumb';
}

export function visibleWidth(text: string): number {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences begin with one
  return text.replaceAll(/\u001b\[[0-9;]*m/g, '').length;
}

/** The action of a command: `run` with its arguments and options, and with the output that the options ask for. */
export function printing<Given extends unknown[]>(
  io: CliIo,
  run: (...given: [...Given, Output]) => void | Promise<void>,
): (...given: [...Given, command: unknown]) => void | Promise<void> {
  return (...all) => {
    const given = all.slice(0, -1) as Given;
    const { json } = given.at(-1) as { readonly json?: boolean };
    return run(...given, new Output(io, json === true));
  };
}
