/** One record after another is appended to a stream, while things happen to its cluster. */

import { expect } from 'vitest';
import { eventually } from '../../../test/support/eventually.js';
import type { ExtentsClient, StreamWriter } from '../src/index.js';

/** Appends until it is ended, and keeps what was acknowledged. */
export class Appender {
  /** In their order. */
  readonly acknowledged: Buffer[] = [];
  readonly #writer: StreamWriter;
  readonly #appending: Promise<void>;
  #isOver = false;

  /** `recordOf`: the record of a number, from 0 on. */
  constructor(writer: StreamWriter, recordOf: (number: number) => Buffer) {
    this.#writer = writer;
    this.#appending = this.#append(recordOf);
  }

  async #append(recordOf: (number: number) => Buffer): Promise<void> {
    while (!this.#isOver) {
      const record = recordOf(this.acknowledged.length);
      await this.#writer.append(record);
      this.acknowledged.push(record);
    }
  }

  /** Resolves when so many more are acknowledged. An append that is refused ends the wait at once, with its reason. */
  more(count: number, limitMs: number): Promise<unknown> {
    const until = this.acknowledged.length + count;
    const grown = eventually(() => this.acknowledged.length >= until, { limitMs });
    return Promise.race([grown, this.#appending.then(() => grown)]);
  }

  /** The last append, and the end of the writer. */
  async end(): Promise<void> {
    this.#isOver = true;
    await this.#appending;
    await this.#writer.close();
  }
}

/** A stream has these records, with their bytes and in their order, and no other ones. */
export async function expectRecords(client: ExtentsClient, stream: string, records: readonly Buffer[]): Promise<void> {
  let count = 0;
  for await (const { data } of client.read(stream)) {
    if (count < records.length) expect(data.equals(records[count]), `record ${count}`).toBe(true);
    count++;
  }
  expect(count).toBe(records.length);
}
