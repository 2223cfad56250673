/**
 * One turn of a NIC, whoever turns: deadlines that are due, then what there is to send. Datagrams are processed as they arrive and
 * answered once a turn, so that acknowledgements coalesce.
 */

import { performance } from 'node:perf_hooks';
import type { Nic } from '../nic/nic.js';
import type { Port, RxDatagram } from '../port/datagram.js';

const NS_PER_MS = 1e6;
const CLOCK_READINGS = 50;

/** What `performance` counts from differs from thread to thread; `hrtime` is the system's monotonic clock, but makes a BigInt a call. */
const START_NS = clockStartNs();

/** Both clocks tick alike; what lies between the two readings is the error, and the shortest of several is taken: the first ones are slow. */
function clockStartNs(): number {
  let startNs = 0;
  let shortestNs = Number.POSITIVE_INFINITY;
  for (let n = 0; n < CLOCK_READINGS; n++) {
    const beforeNs = Number(process.hrtime.bigint());
    const betweenNs = performance.now() * NS_PER_MS;
    const tookNs = Number(process.hrtime.bigint()) - beforeNs;
    if (tookNs >= shortestNs) continue;
    shortestNs = tookNs;
    startNs = beforeNs + tookNs / 2 - betweenNs;
  }
  return startNs;
}

/**
 * What a paced flow may catch up when its turn comes late: timers are a millisecond coarse, and a busy system keeps a process or thread
 * waiting for several. The flow's window bounds the burst as well.
 */
export const PACING_CATCH_UP_NS = 10e6;

/** The system's monotonic clock: the same in all threads, to the microsecond. */
export function nowNs(): number {
  return START_NS + performance.now() * NS_PER_MS;
}

/** A NIC and its port under one clock. */
export class Crank {
  /** What is turned. */
  readonly nic: Nic;
  readonly #port: Port;
  /** The clock is read once a turn, and again for the first datagram after it: what arrived later must not look earlier. */
  nowNs = nowNs();
  #heardSinceTurn = false;

  /** Received datagrams and pauses go to the NIC from here on. */
  constructor(nic: Nic, port: Port, onReceived: () => void) {
    this.nic = nic;
    this.#port = port;
    const onHeard = () => {
      if (!this.#heardSinceTurn) this.nowNs = nowNs();
      this.#heardSinceTurn = true;
      onReceived();
    };
    port.onDatagram = (datagram: RxDatagram) => {
      onHeard();
      nic.receive(datagram, this.nowNs);
    };
    port.onPause = (priority, durationNs) => {
      onHeard();
      nic.pause(priority, durationNs, this.nowNs);
    };
  }

  /** Sends one batch at most: received datagrams wait in the kernel meanwhile, and their buffer is finite. True when it sent something. */
  turn(): boolean {
    const { nic } = this;
    this.#heardSinceTurn = false;
    this.nowNs = nowNs();
    if (nic.nextDeadlineNs <= this.nowNs) nic.onDeadline(this.nowNs);
    if (!nic.hasWork) return false;
    const batch = this.#port.beginBatch();
    if (batch === undefined) return false; // The kernel is behind: the next turn tries again.
    const packets = nic.transmit(batch, this.nowNs);
    this.#port.sendBatch(batch);
    return packets > 0;
  }
}
