/**
 * The poll loop of a NIC with its own thread: reads the socket and the doorbells alternately, and blocks the
 * thread when there is nothing, after a short spin if that pays.
 *
 * Invariant: the thread's event loop, which brings messages and files, runs at least every {@link RUN_NS} of work and
 * after every sleep. The first sleep is {@link SLEEP_NS} at most. An undisturbed sleep is followed by one of up to
 * twice its length, so that an idle NIC seldom wakes up, and the remaining work for a message waits no longer than the
 * message has already waited. Messages end a sleep; the end of the process waits for it.
 */

import type { BatchedUdpPort } from '../../dgram-ext/batched-udp-port.js';
import type { Nic } from '../../nic/nic.js';
import type { Port } from '../../port/datagram.js';
import type { PollHooks } from '../event-loop-poller.js';
import { NicPoller } from '../nic-poller.js';
import { nowNs } from '../system-clock.js';

const RUN_NS = 200_000;
const SLEEP_NS = 10e6;
const SLEEP_MAX_NS = 80e6;

/** Runs a {@link NicPoller} for the lifetime of a thread. */
export class ThreadPoller {
  readonly #nic: Nic;
  readonly #poller: NicPoller;
  readonly #socket: BatchedUdpPort;
  readonly #hooks: PollHooks;
  /** Files that a capture writes, and its timers, need the event loop as well. */
  readonly #sleepMaxNs: number;
  #sleepNs = SLEEP_NS;
  #closed = false;

  constructor(nic: Nic, port: Port, socket: BatchedUdpPort, hooks: PollHooks) {
    this.#nic = nic;
    this.#socket = socket;
    this.#hooks = hooks;
    this.#sleepMaxNs = (port as unknown) === socket ? SLEEP_MAX_NS : SLEEP_NS;
    this.#poller = new NicPoller(nic, port, () => {});
    setImmediate(this.#run);
  }

  /** Ends the loop. */
  close(): void {
    this.#closed = true;
  }

  readonly #run = (): void => {
    if (this.#closed) return;
    const poller = this.#poller;
    const hooks = this.#hooks;
    const endNs = nowNs() + RUN_NS;
    do {
      poller.nowNs = nowNs(); // The time stamp of arrived datagrams, perhaps after a sleep.
      const received = this.#socket.receive(poller.isReading) > 0;
      const rung = hooks.begin();
      const sent = poller.poll();
      if (hooks.mayBlock(poller.nowNs, received || rung || sent || this.#nic.hasWork)) {
        this.#sleep();
        break;
      }
      this.#sleepNs = SLEEP_NS;
    } while (poller.nowNs < endNs);
    setImmediate(this.#run);
  };

  #sleep(): void {
    const woken = this.#socket.wait(Math.max(0, Math.min(this.#sleepNs, this.#nic.nextDeadlineNs - nowNs())));
    this.#sleepNs = woken ? SLEEP_NS : Math.min(2 * this.#sleepNs, this.#sleepMaxNs);
  }
}
