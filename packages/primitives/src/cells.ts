import { checkKind, checkWhole, RoceError } from 'rocev2/internal/core';
import { freeWord, heldWord } from './lease-word.js';
import type { Cell, CellQuestion, PrimitiveKind } from './protocol.js';
import { type RingSizes, ringWords } from './ring-layout.js';
import { READ_WORDS_MAX, WORD_BYTES } from './words.js';

const NAME_BYTES_MAX = 128;
const LEASE_MS = 10_000;
const LEASE_MS_MIN = 10;
const LEASE_MS_MAX = 3_600_000;
const PARTIES_MAX = 2 ** 32;
const RING_BYTES_MAX = 1 << 16;

const SIZES: Partial<Record<PrimitiveKind, { readonly name: string; readonly max: number }>> = {
  semaphore: { name: 'permits', max: READ_WORDS_MAX },
  barrier: { name: 'parties', max: PARTIES_MAX },
};

const hasLease = (kind: PrimitiveKind) => kind === 'lock' || kind === 'semaphore';

export function checkQuestion({ kind, name, size, leaseMs }: CellQuestion): void {
  checkKind('the name', name, typeof name === 'string', 'text');
  checkWhole(`the length of the name in bytes`, Buffer.byteLength(name), 1, NAME_BYTES_MAX);
  if (size !== undefined) checkWhole(SIZES[kind]?.name ?? 'size', size, 1, SIZES[kind]?.max ?? 1);
  if (leaseMs !== undefined) checkWhole('leaseMs', leaseMs, LEASE_MS_MIN, LEASE_MS_MAX);
}

export interface CellsInit {
  readonly region: Buffer;
  readonly firstNumber: bigint;
  readonly areLocksHeld: boolean;
}

/** A name keeps its words as long as the owner lives. */
export class Cells {
  readonly #init: CellsInit;
  readonly #cells = new Map<string, Cell>();
  #used = 0;

  constructor(init: CellsInit) {
    this.#init = init;
  }

  get size(): number {
    return this.#cells.size;
  }

  cell(question: CellQuestion): Cell {
    checkQuestion(question);
    const { kind, name } = question;
    const title = `${kind} '${name}'`;
    const key = `${kind} ${name}`;
    const known = this.#cells.get(key);
    if (known === undefined && kind === 'ring') {
      throw new RoceError('ERR_ROCE_NOT_FOUND', `there is no ${title}`, 'its owner makes it, by `ring`');
    }
    if (known === undefined) {
      const made = this.#make(question, title);
      this.#cells.set(key, made);
      return made;
    }
    for (const term of ['size', 'leaseMs'] as const) {
      const [is, asked] = [known[term], question[term] ?? known[term]];
      if (asked === is) continue;
      const what = term === 'size' ? SIZES[kind]?.name : term;
      throw new RoceError('ERR_ROCE_MISMATCH', `${title} has ${what} ${is}, not ${asked}`, 'all sides say the same');
    }
    return known;
  }

  ring(name: string, { slots, bytes }: RingSizes): Cell {
    checkQuestion({ kind: 'ring', name });
    checkWhole('slots', slots, 1, READ_WORDS_MAX);
    checkWhole('bytes', bytes, 1, RING_BYTES_MAX);
    const title = `ring '${name}'`;
    if (this.#cells.has(`ring ${name}`)) throw new RoceError('ERR_ROCE_BUSY', `there is a ${title} already`);
    const offset = this.#take(ringWords({ slots, bytes }), title);
    const cell = { offset, size: slots, bytes, leaseMs: 0 };
    this.#cells.set(`ring ${name}`, cell);
    return cell;
  }

  #take(words: number, title: string): number {
    const offset = this.#used;
    const end = offset + words * WORD_BYTES;
    if (end > this.#init.region.length)
      throw new RoceError('ERR_ROCE_LIMIT', `there is no room for ${title}`, 'let the owner raise `words`');
    this.#used = end;
    return offset;
  }

  #make({ kind, size, leaseMs = LEASE_MS }: CellQuestion, title: string): Cell {
    if (size === undefined && SIZES[kind] !== undefined)
      throw new RoceError(
        'ERR_ROCE_INVALID_ARGUMENT',
        `${title} is new`,
        `the first user of it gives ${SIZES[kind].name}`,
      );
    const { region, firstNumber, areLocksHeld } = this.#init;
    const words = kind === 'semaphore' ? size! : 1;
    const offset = this.#take(words, title);
    const cell = { offset, size: size ?? 1, bytes: 0, leaseMs: hasLease(kind) ? leaseMs : 0 };
    const end = offset + words * WORD_BYTES;
    const first = areLocksHeld ? heldWord(firstNumber) : freeWord(firstNumber);
    if (hasLease(kind)) for (let at = cell.offset; at < end; at += WORD_BYTES) region.writeBigUInt64LE(first, at);
    if (kind === 'sequencer') region.writeBigUInt64LE(freeWord(firstNumber), cell.offset);
    return cell;
  }
}
