/** The processes of a cluster on this machine: started one after another, started anew if that was asked for, and ended in order. */

import { setTimeout as delay } from 'node:timers/promises';
import type { Output } from '@rocev2/command';
import { RoceError } from 'rocev2/internal/core';

/** Before a process that has died is started anew. */
const RESTART_MS = 1000;

/** What all kinds of processes have in common. */
export interface Relative {
  /** Rejects when it ends without having been asked to. */
  readonly died: Promise<never>;
  /** Its number; undefined if it could not be started. */
  readonly pid: number | undefined;
  /** Closes what it has. */
  call(method: 'close', args: object): Promise<unknown>;
  /** Ends it, by force if it does not go. */
  stop(): Promise<void>;
}

/** A process that is about to be. */
export interface Birth<T> {
  /** Called, watched and stopped by its family. */
  readonly process: Relative;
  /** Its answer when it is at work. */
  readonly started: Promise<T>;
  /** What people are told then. */
  words(value: T): string;
}

/** What a process is: nodes end before managers. */
export type Role = 'manager' | 'node';

/** The processes of a cluster. */
export class Family {
  /** Processes that ended by themselves. */
  deaths = 0;
  readonly #running = new Map<Relative, Role>();
  readonly #output: Output;
  readonly #restart: boolean;
  #isEnding = false;

  /** `restart`: starts processes anew that die. */
  constructor(output: Output, restart: boolean) {
    this.#output = output;
    this.#restart = restart;
  }

  /** Starts a process; from then on its death is reported. Rejects as it does, and with ERR_ROCE_CLOSED once the family has to end. */
  async start<T>(role: Role, name: string, begin: () => Birth<T>): Promise<T> {
    if (this.#isEnding) throw new RoceError('ERR_ROCE_CLOSED', `${name} is not started any more`);
    const { process, started, words } = begin();
    this.#running.set(process, role);
    try {
      const value = await started;
      this.#output.note(`${words(value)}, process ${process.pid}`);
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

  async #onDeath(name: string, error: Error, startAnew: () => Promise<unknown>): Promise<void> {
    if (this.#isEnding) return;
    this.deaths++;
    this.#output.note(error.message);
    while (this.#restart && !this.#isEnding) {
      await delay(RESTART_MS);
      if (this.#isEnding) return;
      try {
        await startAnew();
        return;
      } catch (failure) {
        if (!this.#isEnding) this.#output.note(`${name} cannot be started: ${(failure as Error).message}`);
      }
    }
  }

  /** Ends all processes in order, the nodes first and the managers last, and those that are still starting. */
  async end(): Promise<void> {
    this.#isEnding = true;
    for (const role of ['node', 'manager'] as const) {
      const some = [...this.#running].filter(([, other]) => other === role);
      await Promise.all(some.map(([process]) => close(process)));
    }
  }
}

async function close(process: Relative): Promise<void> {
  await process.call('close', {}).catch(() => {}); // It has died meanwhile.
  await process.stop();
}
