/**
 * The NIC poll loop on an event loop: a poll soon after anything that may have made work, and one timer for all
 * deadlines.
 *
 * After datagrams that a port has delivered together the poll follows in the same iteration of the event loop, once
 * everything that they resolved has run: what the program posts in answer leaves with the acknowledgements, and the
 * loop iterates once per message, not three times. Otherwise the poll is in the check phase, so that what several
 * callbacks of an iteration post leaves together. A doorbell that has waited for long is served at once: the peer works
 * while the program makes more. A program that spins does not return to the loop at all: it polls the NIC itself.
 */

import process from 'node:process';
import type { BatchedUdpPort } from '../dgram-ext/batched-udp-port.js';
import type { Nic } from '../nic/nic.js';
import type { Port } from '../port/datagram.js';
import { NicPoller } from './nic-poller.js';
import { nowNs, timeoutMs } from './system-clock.js';

/** How long the first doorbell waits for others: about as long as a small request takes to make. */
const DOORBELL_WAIT_NS = 25_000;
/**
 * Each early send makes later doorbells wait this many times longer, until the next poll: a peer that has work can wait
 * for more, and trains are cheaper than datagrams.
 */
const WAIT_FACTOR = 4;
const NONE_RANG = Number.POSITIVE_INFINITY;
/**
 * Reading the clock costs a tenth of a short request, so at most this many doorbells ring without it; such rapid ones
 * cannot be late.
 */
const UNTIMED_MAX = 7;

/** Hooks around polls if the application is in another thread. */
export interface PollHooks {
  /**
   * Before each poll, after received datagrams: takes in requests of the application; true when there were any.
   */
  begin(): boolean;
  /** After each poll. False: poll again at once. */
  mayBlock(nowNs: number, worked: boolean): boolean;
}

/** Runs a {@link NicPoller} on an event loop. */
export class EventLoopPoller {
  readonly #poller: NicPoller;
  readonly #nic: Nic;
  readonly #hooks: PollHooks | undefined;
  readonly #socket: Pick<BatchedUdpPort, 'receive'> | undefined;
  readonly #isTold: boolean;
  /** A poll in the check phase is pending. */
  #immediate: NodeJS.Immediate | undefined;
  /** A poll after delivered datagrams is pending: it serves all requests. */
  #followsDelivery = false;
  #timer: NodeJS.Timeout | undefined;
  #timerNs = Number.POSITIVE_INFINITY;
  #closed = false;
  /** Since the last poll. */
  #received = false;
  #rangNs = NONE_RANG;
  #doorbellWaitNs = DOORBELL_WAIT_NS;
  #rings = 0;
  #untimed = 0;

  /**
   * `socket` is the port, or the port inside its wrappers, if that can be read at any time: {@link pollNow} needs it.
   */
  constructor(nic: Nic, port: Port, hooks?: PollHooks, socket?: Pick<BatchedUdpPort, 'receive'>) {
    this.#nic = nic;
    this.#hooks = hooks;
    this.#socket = socket;
    this.#isTold = port.onDelivered !== undefined;
    this.#poller = new NicPoller(nic, port, () => this.#onReceived());
    if (this.#isTold) port.onDelivered = this.#pollAfterDelivery;
  }

  /** Ends the loop. */
  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
  }

  /** Polls after the running code; repeated calls have no effect. */
  pollSoon(): void {
    if (this.#followsDelivery || this.#immediate !== undefined || this.#closed) return;
    this.#immediate = setImmediate(this.#poll);
  }

  /**
   * Reads arrived datagrams once, and polls, within this call. False: nothing was done. The
   * socket cannot be read at any time, the NIC itself has called the caller, or the poller is closed. Timers of the
   * event loop are left alone: the poll that follows on the loop sets them.
   */
  pollNow(): boolean {
    const poller = this.#poller;
    if (this.#socket === undefined || this.#closed || poller.isBusy) return false;
    this.#servesDoorbells();
    poller.receiveAndPoll(this.#socket);
    this.pollSoon();
    return true;
  }

  /** A doorbell of this thread has rung: polls soon, or sends at once. */
  onDoorbell(): void {
    this.pollSoon();
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
    const leftNs = this.#doorbellWaitNs - waitedNs;
    if (leftNs > 0) {
      // Half of the doorbells expected until then at this rate.
      this.#untimed = Math.min(UNTIMED_MAX, Math.floor((leftNs * this.#rings) / (2 * waitedNs + 1)));
    } else if (!this.#closed) {
      this.#rangNs = NONE_RANG;
      this.#doorbellWaitNs *= WAIT_FACTOR;
      this.#poller.send();
    }
  }

  /** A poll serves all of them. */
  #servesDoorbells(): void {
    this.#rangNs = NONE_RANG;
    this.#doorbellWaitNs = DOORBELL_WAIT_NS;
    this.#untimed = 0;
  }

  #onReceived(): void {
    this.#received = true;
    if (!this.#isTold) this.pollSoon();
  }

  /**
   * After the datagrams of one read. Ticks run before promises, so the tick that has to run after them is scheduled by
   * a promise.
   */
  readonly #pollAfterDelivery = (): void => {
    if (this.#followsDelivery || this.#closed) return;
    this.#followsDelivery = true;
    void Promise.resolve().then(this.#tick);
  };

  readonly #tick = (): void => process.nextTick(this.#poll);

  readonly #poll = (): void => {
    this.#followsDelivery = false;
    // A poll before the port has been read again would find nothing new, and fire timers.
    clearImmediate(this.#immediate);
    this.#immediate = undefined;
    this.#servesDoorbells();
    if (this.#closed) return;
    const hooks = this.#hooks;
    const rung = hooks?.begin() ?? false;
    const poller = this.#poller;
    const socket = this.#socket;
    // A timer is due, but datagrams that arrived while the process waited for a processor may not have been announced
    // yet.
    const sent = poller.isReading && socket !== undefined ? poller.receiveAndPoll(socket) : poller.poll();
    const worked = rung || sent || this.#received || this.#nic.hasWork;
    this.#received = false;
    const { isReading } = poller;
    if (isReading || this.#nic.hasWork || hooks?.mayBlock(poller.nowNs, worked) === false) this.pollSoon();
    if (!isReading) this.#setTimer();
  };

  #setTimer(): void {
    const next = this.#nic.nextDeadlineNs;
    // A timer that fires early only finds that nothing is due.
    if (next >= this.#timerNs) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#timerNs = next;
    this.#timer = setTimeout(this.#onTimer, timeoutMs(next - this.#poller.nowNs));
  }

  readonly #onTimer = (): void => {
    this.#timer = undefined;
    this.#timerNs = Number.POSITIVE_INFINITY;
    this.pollSoon();
  };
}
