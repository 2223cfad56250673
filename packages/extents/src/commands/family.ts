import { setTimeout as delay } from 'node:timers/promises';
import type { Output } from '@rocev2/command';
import { RoceError } from 'rocev2/internal/core';

const RESTART_MS = 1000;

export interface Relative {
  readonly died: Promise<never>;
  readonly pid: number | undefined;
  call(method: 'close', args: object): Promise<unknown>;
  stop(): Promise<void>;
}

export interface Birth<T> {
  readonly process: Relative;
  readonly started: Promise<T>;
  words(value: T): string;
}

export type Role = 'manager' | 'node';

export class Family {
  deaths = 0;
  readonly #running = new Map<Relative, Role>();
  readonly output: Output;
  readonly #restart: boolean;
  #isEnding = false;

  constructor(output: Output, restart: boolean) {
    this.output = output;
    this.#restart = restart;
  }

  async start<T>(role: Role, name: string, begin: () => Birth<T>): Promise<T> {
    if (this.#isEnding) throw new RoceError('ERR_ROCE_CLOSED', `${name} is no longer started`);
    const { process, started, words } = begin();
    this.#running.set(process, role);
    try {
      const value = await started;
      this.output.note(`${words(value)}, process ${process.pid}`);
      process.died.catch((error: Error) => {
        this.#running.delete(process);
        void this.#onDeath(name, error, () => this.start(role, name, begin));
      });
      return value;
    } catch (error) {
      this.#running.delete(process);
      await process.stop();
      throw error;
    }
  }

  async #onDeath(name: string, error: Error, restart: () => Promise<unknown>): Promise<void> {
    if (this.#isEnding) return;
    this.deaths++;
    this.output.warn(error.message);
    while (this.#restart && !this.#isEnding) {
      await delay(RESTART_MS);
      if (this.#isEnding) return;
      try {
        await restart();
        return;
      } catch (failure) {
        if (!this.#isEnding) this.output.warn(`${name} cannot be started: ${(failure as Error).message}`);
      }
    }
  }

  async end(): Promise<void> {
    this.#isEnding = true;
    for (const role of ['node', 'manager'] as const) {
      const some = [...this.#running].filter(([, other]) => other === role);
      await Promise.all(some.map(([process]) => close(process)));
    }
  }
}

async function close(process: Relative): Promise<void> {
  await process.call('close', {}).catch(() => {});
  await process.stop();
}
