/**
 * Turns the crank on an event loop: a turn soon after whatever may have made work, and one timer for all deadlines.
 *
 * Behind datagrams that a port has delivered together the turn comes in the same round of the loop, once everything that they resolved has run: what
 * the program posts in answer leaves with the acknowledgements, and the loop goes round once a message, not three times. Otherwise the turn comes in the check
 * phase, so that what several callbacks of a round post leaves together. A doorbell that has waited for long is served at once: the peer works while the program
 * makes more. A program that spins does not come back to the loop at all: it asks for turns.
 */

import process from 'node:process';
import type { BatchedUdpPort } from '../dgram-ext/batched-udp-port.js';
import type { Nic } from '../nic/nic.js';
import type { Port } from '../port/datagram.js';
import { Crank } from './crank.js';
import { nowNs, timeoutMs } from './system-clock.js';

/** How long the first doorbell waits for others: about as long as a small request takes to make. */
const DOORBELL_PATIENCE_NS = 25_000;
/** So much longer waits what rings behind an early send, until the next turn: a peer that has work can wait for more, and trains are cheaper than datagrams. */
const MORE_PATIENCE = 4;
const NONE_RANG = Number.POSITIVE_INFINITY;
/** Doorbells at most that ring without a look at the clock, which costs a tenth of what a short request does: they ring so fast that none of them can be late. */
const UNTIMED_MAX = 7;

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
  /** What can be read at any time. */
  readonly #socket: Pick<BatchedUdpPort, 'receive'> | undefined;
  /** The port says when it has delivered. */
  readonly #isTold: boolean;
  /** A turn in the check phase is pending. */
  #immediate: NodeJS.Immediate | undefined;
  /** A turn behind what was delivered is pending: it serves everybody. */
  #isBehind = false;
  #timer: NodeJS.Timeout | undefined;
  #timerNs = Number.POSITIVE_INFINITY;
  #closed = false;
  /** Since the last turn. */
  #received = false;
  /** When the first doorbell rang that has not been served. */
  #rangNs = NONE_RANG;
  #patienceNs = DOORBELL_PATIENCE_NS;
  /** Doorbells since that one. */
  #rings = 0;
  /** Doorbells until the clock is looked at again. */
  #untimed = 0;

  /** `socket` is the port or what it is wrapped around, if that can be read at any time: {@link turnNow} needs it. */
  constructor(nic: Nic, port: Port, hooks?: TurnHooks, socket?: Pick<BatchedUdpPort, 'receive'>) {
    this.#nic = nic;
    this.#hooks = hooks;
    this.#socket = socket;
    this.#isTold = port.onDelivered !== undefined;
    this.#crank = new Crank(nic, port, () => this.#onReceived());
    if (this.#isTold) port.onDelivered = this.#turnBehind;
  }

  /** No further turn is taken. */
  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }

  /** Takes a turn after what is running now; asking again changes nothing. */
  turnSoon(): void {
    if (this.#isBehind || this.#immediate !== undefined || this.#closed) return;
    this.#immediate = setImmediate(this.#turn);
  }

  /**
   * Reads what has arrived, as much as one look brings, and takes a turn, within this call. False: nothing was done. The socket cannot be read at any time, the
   * NIC itself has called the caller, or the crank is closed. Timers of the loop are left alone: a turn of the loop behind this one sets them.
   */
  turnNow(): boolean {
    const crank = this.#crank;
    if (this.#socket === undefined || this.#closed || crank.isBusy) return false;
    this.#servesDoorbells();
    crank.lookAndTurn(this.#socket);
    this.turnSoon();
    return true;
  }

  /** A doorbell of this thread has rung: a turn soon, or what there is leaves at once. */
  onDoorbell(): void {
    this.turnSoon();
    this.#rings++;
    if (this.#untimed > 0) {
      this.#untimed--;
      return;
    }
    const timeNs = nowNs();
    if (this.#rangNs === NONE_RANG) {
      this.#rangNs = timeNs;
      this.#rings = 0;
      return;
    }
    const waitedNs = timeNs - this.#rangNs;
    const leftNs = this.#patienceNs - waitedNs;
    if (leftNs > 0) {
      // Half as many as would ring until then if they went on like this.
      this.#untimed = Math.min(UNTIMED_MAX, Math.floor((leftNs * this.#rings) / (2 * waitedNs + 1)));
    } else if (!this.#closed) {
      this.#rangNs = NONE_RANG;
      this.#patienceNs *= MORE_PATIENCE;
      this.#crank.send();
    }
  }

  /** A turn serves all of them. */
  #servesDoorbells(): void {
    this.#rangNs = NONE_RANG;
    this.#patienceNs = DOORBELL_PATIENCE_NS;
    this.#untimed = 0;
  }

  /** Before the NIC gets a datagram. */
  #onReceived(): void {
    this.#received = true;
    if (!this.#isTold) this.turnSoon();
  }

  /** Behind the datagrams of one look. Ticks come before promises, so that the one that has to come behind them is made by a promise. */
  readonly #turnBehind = (): void => {
    if (this.#isBehind || this.#closed) return;
    this.#isBehind = true;
    void Promise.resolve().then(this.#tick);
  };

  readonly #tick = (): void => process.nextTick(this.#turn);

  readonly #turn = (): void => {
    this.#isBehind = false;
    // A turn that comes before the port has looked again would find nothing new, and judge timers.
    clearImmediate(this.#immediate);
    this.#immediate = undefined;
    this.#servesDoorbells();
    if (this.#closed) return;
    const hooks = this.#hooks;
    const rung = hooks?.begin() ?? false;
    const crank = this.#crank;
    const socket = this.#socket;
    // A timer is due: what arrived while the process waited for a processor may not have been announced yet.
    const sent = crank.isReading && socket !== undefined ? crank.lookAndTurn(socket) : crank.turn();
    const worked = rung || sent || this.#received || this.#nic.hasWork;
    this.#received = false;
    const { isReading } = crank;
    if (isReading || this.#nic.hasWork || hooks?.mayBlock(crank.nowNs, worked) === false) this.turnSoon();
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
