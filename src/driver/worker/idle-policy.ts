/**
 * The NIC's side of the sleeping protocol, the doorbells, and the spinner's token: only one NIC of a process spins at a
 * time, so that they do not take the cores from each other.
 */

import { AdaptiveSpin } from '../../core/adaptive-spin.js';
import type { DoorbellRing } from '../../memory/ring/doorbell-ring.js';
import type { Nic } from '../../nic/nic.js';
import { ASLEEP, AWAKE, WORD_STATE } from './thread-messages.js';

/** The decision of one NIC, poll by poll. Times are nanoseconds of the engine's clock. */
export class IdlePolicy {
  readonly #control: Int32Array;
  readonly #doorbells: DoorbellRing;
  readonly #spinner: Int32Array;
  readonly #spin: AdaptiveSpin | undefined;
  readonly #one: (qpn: number) => void;
  readonly #all: () => void;
  #workedNs = 0;
  #lookedNs = 0;
  #idle = false;
  #asleep = true;
  #holdsToken = false;

  constructor(nic: Nic, control: Int32Array, doorbells: DoorbellRing, spinner: Int32Array, spin: boolean) {
    this.#control = control;
    this.#doorbells = doorbells;
    this.#spinner = spinner;
    this.#spin = spin ? new AdaptiveSpin() : undefined;
    this.#one = (qpn) => nic.doorbell(qpn);
    this.#all = () => nic.doorbellAll();
  }

  /** Before each poll: takes in the doorbells; true when there were any. */
  begin(): boolean {
    if (this.#asleep) this.#wakeUp();
    if (!this.#doorbells.isRinging) return false;
    this.#doorbells.drain(this.#one, this.#all);
    return true;
  }

  /** After each poll. True: the thread may block, a doorbell from here on wakes it. False: poll again at once. */
  mayBlock(nowNs: number, worked: boolean): boolean {
    if (worked) this.#worked(nowNs);
    return !worked && !this.#mayLookAgain(nowNs) && this.#fallAsleep();
  }

  /** The loop has ended. */
  close(): void {
    this.#giveToken();
  }

  #worked(nowNs: number): void {
    if (this.#idle) {
      this.#idle = false;
      this.#spin?.onGap(nowNs - this.#workedNs, nowNs);
      this.#giveToken();
    }
    this.#workedNs = nowNs;
  }

  #mayLookAgain(nowNs: number): boolean {
    const spin = this.#spin;
    if (this.#idle) spin?.onLook(nowNs - this.#lookedNs, nowNs);
    this.#idle = true;
    this.#lookedNs = nowNs;
    if (spin !== undefined && nowNs - this.#workedNs < spin.budgetNs(nowNs) && this.#takeToken()) return true;
    this.#giveToken();
    return false;
  }

  #fallAsleep(): boolean {
    this.#asleep = true;
    Atomics.store(this.#control, WORD_STATE, ASLEEP);
    if (!this.#doorbells.isRinging) return true;
    this.#wakeUp();
    return false;
  }

  #wakeUp(): void {
    this.#asleep = false;
    Atomics.store(this.#control, WORD_STATE, AWAKE);
    this.#lookedNs = Number.POSITIVE_INFINITY;
  }

  #takeToken(): boolean {
    this.#holdsToken ||= Atomics.compareExchange(this.#spinner, 0, 0, 1) === 0;
    return this.#holdsToken;
  }

  #giveToken(): void {
    if (!this.#holdsToken) return;
    this.#holdsToken = false;
    Atomics.store(this.#spinner, 0, 0);
  }
}
