/**
 * One turn of a NIC, whoever turns: deadlines that are due, then what there is to send. Datagrams are processed as they arrive and
 * answered once a turn, so that acknowledgements coalesce.
 */

import type { Nic } from '../nic/nic.js';
import type { Port, RxDatagram } from '../port/datagram.js';
import { nowNs } from './system-clock.js';

/**
 * What a paced flow may catch up when its turn comes late: timers are a millisecond coarse, and a busy system keeps a process or thread
 * waiting for several. The flow's window bounds the burst as well.
 */
export const PACING_CATCH_UP_NS = 10e6;

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
