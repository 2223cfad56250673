import { RpcError } from '@rocev2/rpc';
import type { ExtentFiles } from '../extent-files.js';
import { KeyedMutex } from '../keyed-mutex.js';
import type { Quarantine } from '../quarantine.js';
import { Fragment, type FragmentState } from './fragment.js';
import { type FragmentId, type FragmentShape, fragmentKey } from './layout.js';

const SUFFIX = '.fragment';
const IDLE_MAX = 60;

export function isFragmentFile(name: string): boolean {
  return name.endsWith(SUFFIX);
}

export class FragmentStore {
  readonly #files: ExtentFiles;
  readonly #quarantine: Quarantine;
  readonly #writing: <T>(work: () => Promise<T>) => Promise<T>;
  readonly #fragments = new Map<string, Fragment>();
  /** A file is made, and deleted, by one request at a time. */
  readonly #mutexes = new KeyedMutex<string>();

  constructor(files: ExtentFiles, quarantine: Quarantine, writing: <T>(work: () => Promise<T>) => Promise<T>) {
    this.#files = files;
    this.#quarantine = quarantine;
    this.#writing = writing;
  }

  async recover(name: string): Promise<void> {
    const file = await this.#files.open(name);
    const fragment = await Fragment.recover(file);
    if (fragment !== undefined && fileName(fragment.state) === name) {
      this.#fragments.set(fragmentKey(fragment.state), fragment);
      return;
    }
    await file.close();
    await this.#files.remove(name);
  }

  complete(): FragmentState[] {
    return [...this.#fragments.values()].map(({ state }) => state).filter(({ isMaking }) => isMaking !== true);
  }

  usedBytes(): number {
    let sum = 0;
    for (const { bytes } of this.#fragments.values()) sum += bytes;
    return sum;
  }

  get(id: FragmentId): Fragment {
    const fragment = this.#fragments.get(fragmentKey(id));
    if (fragment === undefined || fragment.state.isMaking === true) throw missing(id);
    return fragment;
  }

  write(state: FragmentId & FragmentShape, first: number, data: Buffer, crcs: Uint32Array): Promise<void> {
    return this.#writing(async () => {
      const { extent, fragment, making, code, length, of } = state;
      const found = await this.#begun({ extent, fragment, making, code, length, of });
      await found.write(first, data, crcs);
    });
  }

  #begun(state: FragmentState): Promise<Fragment> {
    const key = fragmentKey(state);
    return this.#mutexes.run(key, async () => {
      const there = this.#fragments.get(key);
      if (there !== undefined) return there;
      const fragment = await Fragment.create(await this.#files.create(fileName(state)), state);
      this.#fragments.set(key, fragment);
      return fragment;
    });
  }

  finish(id: FragmentId): Promise<void> {
    return this.#writing(async () => {
      const fragment = this.#fragments.get(fragmentKey(id));
      if (fragment === undefined) throw missing(id);
      await fragment.finish();
    });
  }

  mend(id: FragmentId, first: number, data: Buffer, crcs: Uint32Array): Promise<void> {
    return this.#writing(() => this.get(id).mend(first, data, crcs));
  }

  remove(id: FragmentId): Promise<void> {
    const key = fragmentKey(id);
    return this.#mutexes.run(key, async () => {
      const fragment = this.#fragments.get(key);
      if (fragment === undefined) return;
      this.#fragments.delete(key);
      await fragment.close();
      if (fragment.state.isMaking === true) await this.#files.remove(fileName(id));
      else await this.#quarantine.take(fileName(id), fragment.bytes);
    });
  }

  async removeIdle(): Promise<void> {
    for (const fragment of [...this.#fragments.values()])
      if (fragment.state.isMaking === true && ++fragment.idle > IDLE_MAX) await this.remove(fragment.state);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#fragments.values()].map((fragment) => fragment.close()));
  }
}

function missing({ extent, fragment }: FragmentId): RpcError {
  return new RpcError('MISSING', `there is no such fragment ${fragment} of extent ${extent} here`);
}

function fileName(id: FragmentId): string {
  return `${fragmentKey(id)}${SUFFIX}`;
}
