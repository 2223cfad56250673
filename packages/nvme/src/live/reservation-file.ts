import { access, constants, open, readFile, rename } from 'node:fs/promises';
import { dirname } from 'node:path';
import { PromiseMutex, RoceError, whyUnreadable, whyUnwritable } from 'rocev2/internal/core';
import type { ReservationState, ReservationStore } from '../reservations.js';

const VERSION = 1;

/** A state as in the file: keys are texts, because numbers of JSON have 53 bits. */
interface StoredState {
  readonly registrants: ReadonlyArray<readonly [hostId: string, key: string]>;
  readonly type: number;
  readonly holder?: string;
}

/** Two targets must not share it. */
export class ReservationFile {
  readonly #path: string;
  readonly #states: Map<string, StoredState>;
  readonly #writing = new PromiseMutex();

  private constructor(path: string, states: Map<string, StoredState>) {
    this.#path = path;
    this.#states = states;
  }

  static async open(path: string): Promise<ReservationFile> {
    await access(dirname(path), constants.W_OK).catch((cause: unknown) => {
      throw new RoceError('ERR_ROCE_IO', `cannot write ${path}: ${whyUnwritable(cause)}`, undefined, { cause });
    });
    let text: string;
    try {
      text = await readFile(path, 'utf8');
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return new ReservationFile(path, new Map());
      const why = whyUnreadable(cause as NodeJS.ErrnoException);
      throw new RoceError('ERR_ROCE_IO', `cannot read ${path}: ${why}`, undefined, { cause });
    }
    return new ReservationFile(path, parse(text, path));
  }

  storeOf(nqn: string, nsid: number): ReservationStore {
    const name = `${nqn} ${nsid}`;
    const stored = this.#states.get(name);
    return {
      initial: stored && stateOf(stored),
      save: (state) => {
        if (state === undefined) {
          if (!this.#states.delete(name)) return Promise.resolve();
        } else this.#states.set(name, storedOf(state));
        return this.#writing.run(() => this.#write());
      },
    };
  }

  /** Durable when it resolves: the file, and then its name. */
  async #write(): Promise<void> {
    const text = JSON.stringify({ version: VERSION, namespaces: Object.fromEntries(this.#states) }, undefined, 2);
    const draft = `${this.#path}.new`;
    try {
      await using file = await open(draft, 'w', 0o600);
      await file.writeFile(`${text}\n`);
      await file.sync();
      await rename(draft, this.#path);
      await using folder = await open(dirname(this.#path), 'r');
      await folder.sync();
    } catch (cause) {
      throw new RoceError('ERR_ROCE_IO', `cannot write ${this.#path}: ${(cause as Error).message}`, undefined, {
        cause,
      });
    }
  }
}

function parse(text: string, path: string): Map<string, StoredState> {
  try {
    const { version, namespaces } = JSON.parse(text) as { version: unknown; namespaces: Record<string, StoredState> };
    if (version !== VERSION) throw new Error(`its version is ${version}`);
    const states = Object.entries(namespaces);
    for (const [, state] of states) check(state);
    return new Map(states);
  } catch (cause) {
    const what = `${path} is not a file of reservations: ${(cause as Error).message}`;
    throw new RoceError('ERR_ROCE_MALFORMED', what, 'without it all registrations are gone', { cause });
  }
}

function check({ registrants, type, holder }: StoredState): void {
  const isHost = (id: unknown) => typeof id === 'string' && /^[0-9a-f]{32}$/.test(id);
  const areRegistrants =
    Array.isArray(registrants) && registrants.every(([id, key]) => isHost(id) && /^[1-9]\d{0,19}$/.test(key));
  const isType = Number.isInteger(type) && type >= 0 && type <= 6;
  const isHolder = holder === undefined || (isHost(holder) && registrants.some(([id]) => id === holder));
  if (!areRegistrants || !isType || !isHolder) throw new Error('a namespace in it is malformed');
}

function stateOf({ registrants, type, holder }: StoredState): ReservationState {
  return { registrants: registrants.map(([id, key]) => [id, BigInt(key)]), type, holder };
}

function storedOf({ registrants, type, holder }: ReservationState): StoredState {
  return { registrants: registrants.map(([id, key]) => [id, `${key}`]), type, ...(holder !== undefined && { holder }) };
}
