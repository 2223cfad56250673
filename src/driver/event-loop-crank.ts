/**
 * Turns the crank on an event loop: a turn soon after whatever may have made work, and one timer for all deadlines.
 */

import type { Nic } from '../nic/nic.js';
import type { Port } from '../port/datagram.js';
import { Crank } from './crank.js';
import { timeoutMs } from './system-clock.js';

/** What happens around turns where the application is in another thread. */
export interface TurnHooks {
  /** Before each turn, behind what was received: takes in what was asked for meanwhile; true when something was. */
  begin(): boolean;
  /** After each turn. False: take another one at once. */
  mayBlock(nowNs: number, worked: boolean): boolean;
}

/** A {@link Crank} that an event loop turns. */
export class EventLoopCrank {
  readonly #crank: Crank;
  readonly #nic: Nic;
  readonly #hooks: TurnHooks | undefined;
  #turnPending = false;
  #timer: NodeJS.Timeout | undefined;
  #timerNs = Number.POSITIVE_INFINITY;
  #closed = false;
  /** Since the last turn. */
  #received = false;

  constructor(nic: Nic, port: Port, hooks?: TurnHooks) {
    this.#nic = nic;
    this.#hooks = hooks;
    this.#crank = new Crank(nic, port, () => this.#onReceived());
  }

  /** No further turn is taken. */
  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }

  /** Takes a turn after what is running now; asking again changes nothing. */
  turnSoon(): void {
    if (this.#turnPending || this.#closed) return;
    this.#turnPending = true;
    setImmediate(this.#turn);
  }

  /** Before the NIC gets a datagram. */
  #onReceived(): void {
    this.#received = true;
    this.turnSoon();
  }

  readonly #turn = (): void => {
    this.#turnPending = false;
    if (this.#closed) return;
    const hooks = this.#hooks;
    const rung = hooks?.begin() ?? false;
    const sent = this.#crank.turn();
    const worked = rung || sent || this.#received || this.#nic.hasWork;
    this.#received = false;
    const { isReading } = this.#crank;
    if (isReading || this.#nic.hasWork || hooks?.mayBlock(this.#crank.nowNs, worked) === false) this.turnSoon();
    if (!isReading) this.#setTimer();
  };

  #setTimer(): void {
    const next = this.#nic.nextDeadlineNs;
    // A timer that fires early only finds that nothing is due.
    if (next >= this.#timerNs) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#timerNs = next;
    this.#timer = setTimeout(this.#onTimer, timeoutMs(next - this.#crank.nowNs));
  }

  readonly #onTimer = (): void => {
    this.#timer = undefined;
    this.#timerNs = Number.POSITIVE_INFINITY;
    this.turnSoon();
  };
}
