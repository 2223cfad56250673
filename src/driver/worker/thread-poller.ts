/**
 * Turns the crank of a NIC that has a thread to itself: looks at the socket and at the doorbells in turn, and blocks the thread when there
 * is nothing, after a short spin if that pays.
 *
 * Invariant: the thread's event loop, which brings messages and files, gets its turn at least every {@link TURN_NS} of work and after
 * every sleep. The first sleep is {@link SLEEP_NS} at most. Each that nothing ends is followed by one of up to twice its length, so that an idle NIC seldom wakes
 * up, and what the loop still has to do for a message waits no longer than the message has waited already. Messages end a sleep; whoever ends the process waits
 * for the end of it.
 */

import type { BatchedUdpPort } from '../../dgram-ext/batched-udp-port.js';
import type { Nic } from '../../nic/nic.js';
import type { Port } from '../../port/datagram.js';
import { Crank } from '../crank.js';
import type { TurnHooks } from '../event-loop-crank.js';
import { nowNs } from '../system-clock.js';

const TURN_NS = 200_000;
const SLEEP_NS = 10e6;
const SLEEP_MAX_NS = 80e6;

/** A {@link Crank} that a thread turns as long as it lives. */
export class PollingCrank {
  readonly #nic: Nic;
  readonly #crank: Crank;
  readonly #socket: BatchedUdpPort;
  readonly #hooks: TurnHooks;
  /** Files that a capture writes, and its timers, need the event loop, too. */
  readonly #sleepMaxNs: number;
  #sleepNs = SLEEP_NS;
  #closed = false;

  /** `port` is `socket`, or wrapped around it. */
  constructor(nic: Nic, port: Port, socket: BatchedUdpPort, hooks: TurnHooks) {
    this.#nic = nic;
    this.#socket = socket;
    this.#hooks = hooks;
    this.#sleepMaxNs = (port as unknown) === socket ? SLEEP_MAX_NS : SLEEP_NS;
    this.#crank = new Crank(nic, port, () => {});
    setImmediate(this.#turn);
  }

  /** No further turn is taken. */
  close(): void {
    this.#closed = true;
  }

  readonly #turn = (): void => {
    if (this.#closed) return;
    const crank = this.#crank;
    const hooks = this.#hooks;
    const endNs = nowNs() + TURN_NS;
    do {
      crank.nowNs = nowNs(); // What arrives is stamped with it, perhaps after a sleep.
      const received = this.#socket.receive(crank.isReading) > 0;
      const rung = hooks.begin();
      const sent = crank.turn();
      if (hooks.mayBlock(crank.nowNs, received || rung || sent || this.#nic.hasWork)) {
        this.#sleep();
        break;
      }
      this.#sleepNs = SLEEP_NS;
    } while (crank.nowNs < endNs);
    setImmediate(this.#turn);
  };

  #sleep(): void {
    const woken = this.#socket.wait(Math.max(0, Math.min(this.#sleepNs, this.#nic.nextDeadlineNs - nowNs())));
    this.#sleepNs = woken ? SLEEP_NS : Math.min(2 * this.#sleepNs, this.#sleepMaxNs);
  }
}
