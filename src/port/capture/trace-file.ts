/**
 * A trace as JSON lines in the shape of a sequential qlog file (draft-ietf-quic-qlog-main-schema, qlog_version 0.4),
 * without the record separators of JSON-SEQ. The first record describes the trace; each further one is
 * `{time, name, data}`, time in milliseconds since the first. Memory is bounded; records that do not fit are counted.
 */

import { type FileHandle, open } from 'node:fs/promises';
import { RoceError } from '../../core/errors.js';
import { whyUnwritable } from '../../core/file-errors.js';
import { NS_PER_MS } from '../../core/units.js';
import type { EventData, EventName } from './events.js';

const WAITING_CHARACTERS_MAX = 16 * 1024 * 1024;

export interface TraceHeader {
  readonly qlog_version: '0.4';
  readonly qlog_format: 'NDJSON';
  readonly title: string;
  readonly trace: {
    readonly vantage_point: { readonly name: string; readonly type: 'unknown' };
    readonly common_fields: {
      readonly protocol_type: readonly ['ROCEV2'];
      readonly time_format: 'relative';
      readonly reference_time: number;
    };
  };
}

export interface TraceClock {
  nowNs(): number;
  wallMs(): number;
}

export class TraceFile {
  readonly #path: string;
  readonly #handle: FileHandle;
  readonly #clock: TraceClock;
  readonly #startNs: number;
  #lines: string[] = [];
  #waitingCharacters = 0;
  #lost = 0;
  #writing: Promise<void> | undefined;
  #failure: Error | undefined;
  #closed = false;

  private constructor(path: string, handle: FileHandle, clock: TraceClock) {
    this.#path = path;
    this.#handle = handle;
    this.#clock = clock;
    this.#startNs = clock.nowNs();
  }

  static async create(path: string, place: string, clock: TraceClock): Promise<TraceFile> {
    try {
      const file = new TraceFile(path, await open(path, 'w'), clock);
      const header: TraceHeader = {
        qlog_version: '0.4',
        qlog_format: 'NDJSON',
        title: 'rocev2',
        trace: {
          vantage_point: { name: place, type: 'unknown' },
          common_fields: {
            protocol_type: ['ROCEV2'],
            time_format: 'relative',
            reference_time: clock.wallMs(),
          },
        },
      };
      file.#write(JSON.stringify(header));
      return file;
    } catch (cause) {
      throw writeError(path, cause);
    }
  }

  event<N extends EventName>(name: N, data: EventData<N>): void {
    if (this.#closed || this.#failure !== undefined) return;
    if (this.#waitingCharacters > WAITING_CHARACTERS_MAX) {
      this.#lost++;
      return;
    }
    this.#sayLost();
    this.#writeEvent(name, data);
  }

  /** Waits until what has been written so far has been handed to the disk: for virtual time, which never waits. */
  async flush(): Promise<void> {
    await this.#writing;
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    await this.#writing;
    this.#sayLost();
    this.#closed = true;
    await this.#writing;
    await this.#handle.close();
    if (this.#failure !== undefined) throw this.#failure;
  }

  #sayLost(): void {
    if (this.#lost > 0) this.#writeEvent('roce:records_lost', { count: this.#lost });
    this.#lost = 0;
  }

  #writeEvent<N extends EventName>(name: N, data: EventData<N>): void {
    const time = Math.round(this.#clock.nowNs() - this.#startNs) / NS_PER_MS;
    this.#write(JSON.stringify({ time, name, data }));
  }

  #write(line: string): void {
    this.#lines.push(line);
    this.#waitingCharacters += line.length + 1;
    this.#writing ??= this.#drain();
  }

  async #drain(): Promise<void> {
    try {
      while (this.#lines.length > 0) {
        const text = `${this.#lines.join('\n')}\n`;
        this.#lines = [];
        this.#waitingCharacters = 0;
        await this.#handle.appendFile(text);
      }
    } catch (cause) {
      this.#failure = writeError(this.#path, cause);
    } finally {
      this.#writing = undefined;
    }
  }
}

function writeError(path: string, cause: unknown): RoceError {
  return new RoceError('ERR_ROCE_IO', `cannot write trace ${path}: ${whyUnwritable(cause)}`, undefined, { cause });
}
