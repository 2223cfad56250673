/**
 * Turns the crank of a NIC that has a thread to itself: looks at the socket and at the doorbells in turn, and blocks the thread when there
 * is nothing, after a short spin if that pays.
 *
 * Invariant: the thread's event loop, which brings messages and files, gets its turn at least every {@link TURN_NS} of work and after
 * every sleep, and no sleep is longer than {@link SLEEP_MAX_NS}.
 */

import type { BatchedUdpPort } from '../../dgram-ext/batched-udp-port.js';
import type { Nic } from '../../nic/nic.js';
import type { Port } from '../../port/datagram.js';
import { Crank } from '../crank.js';
import type { TurnHooks } from '../event-loop-crank.js';
import { nowNs } from '../system-clock.js';

const TURN_NS = 200_000;
/** Files that a capture writes need the event loop, too. */
const SLEEP_MAX_NS = 10e6;

/** A {@link Crank} that a thread turns as long as it lives. */
export class PollingCrank {
  readonly #nic: Nic;
  readonly #crank: Crank;
  readonly #socket: BatchedUdpPort;
  readonly #hooks: TurnHooks;
  #closed = false;

  /** `port` is `socket`, or wrapped around it. */
  constructor(nic: Nic, port: Port, socket: BatchedUdpPort, hooks: TurnHooks) {
    this.#nic = nic;
    this.#socket = socket;
    this.#hooks = hooks;
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
      const received = this.#socket.receive() > 0;
      const rung = hooks.begin();
      const sent = crank.turn();
      if (hooks.mayBlock(crank.nowNs, received || rung || sent || this.#nic.hasWork)) {
        this.#socket.wait(Math.max(0, Math.min(SLEEP_MAX_NS, this.#nic.nextDeadlineNs - nowNs())));
        break;
      }
    } while (crank.nowNs < endNs);
    setImmediate(this.#turn);
  };
}
