/**
 * One iteration of the NIC poll loop, in any thread: due deadlines, then packets to send.
 * Datagrams are processed as they arrive and answered once per poll, so that acknowledgements coalesce.
 */

import type { BatchedUdpPort } from '../dgram-ext/batched-udp-port.js';
import type { Nic } from '../nic/nic.js';
import type { Port, RxDatagram } from '../port/datagram.js';
import { nowNs } from './system-clock.js';

/**
 * How far a paced flow may catch up when it is polled late: timers have a resolution of a millisecond, and a busy
 * system delays threads by several. The flow's window bounds the burst as well.
 */
export const PACING_CATCH_UP_NS = 10e6;

/** After reading this many, everything that had arrived before has been read. */
const ARRIVED_MAX = 8192;
const NONE_DUE = -1;
/**
 * After a batch of this many packets the clock is read again: that costs less than a hundredth of the batch, which
 * would be retransmitted if its timer began too early. Shorter ones are seldom delayed, and cost little when they are
 * retransmitted.
 */
const TIMED_PACKETS = 8;
/**
 * A batch that left this long after the clock was read was delayed by the system. Making and sending the longest one
 * takes a tenth of it.
 */
const SCHEDULING_DELAY_MIN_NS = 1e6;

/** Polls a NIC and its port under one clock. */
export class NicPoller {
  /** Its deadlines and batches are served here. */
  readonly nic: Nic;
  readonly #port: Port;
  /**
   * The clock is read once per poll, and again for the first datagram after it: later datagrams must not look earlier.
   */
  nowNs = nowNs();
  /** The NIC is running: code that it calls must not poll it. */
  isBusy = false;
  #isReceiving = false;
  /** Datagrams and pauses since the last poll. */
  #heard = 0;
  /** Datagrams and pauses since the first poll that found a timer due; {@link NONE_DUE}: no timer is due. */
  #heardSinceDue = NONE_DUE;

  constructor(nic: Nic, port: Port, onReceived: () => void) {
    this.nic = nic;
    this.#port = port;
    const onHeard = () => {
      if (this.#heard === 0 && !this.#isReceiving) this.nowNs = nowNs();
      this.#heard++;
      onReceived();
    };
    port.onDatagram = (datagram: RxDatagram) => {
      onHeard();
      this.isBusy = true;
      nic.receive(datagram, this.nowNs);
      this.isBusy = false;
    };
    if (port.onTrain !== undefined) port.onTrain = (...train) => nic.trainArrives(...train);
    port.onPause = (priority, durationNs) => {
      onHeard();
      nic.pause(priority, durationNs, this.nowNs);
    };
  }

  /** A timer is due and waits until everything that has arrived is read: the next poll must follow at once. */
  get isReading(): boolean {
    return this.#heardSinceDue !== NONE_DUE;
  }

  /** Sends one batch at most, between polls. Nothing has been read since the last one, so no timer fires. */
  send(): void {
    this.nowNs = nowNs();
    this.#send();
  }

  /**
   * Sends one batch at most: received datagrams wait in the kernel in the meantime, and their buffer is finite. True
   * when it sent something.
   */
  poll(): boolean {
    this.nowNs = nowNs();
    return this.#poll();
  }

  /**
   * Reads what the port has and polls, both at one time: reading the clock costs as much as reading an empty socket.
   */
  receiveAndPoll(socket: Pick<BatchedUdpPort, 'receive'>): boolean {
    this.nowNs = nowNs();
    this.#isReceiving = true;
    socket.receive(this.isReading);
    this.#isReceiving = false;
    return this.#poll();
  }

  #poll(): boolean {
    const { nic } = this;
    const heard = this.#heard;
    this.#heard = 0;
    const firesTimers = this.#mayFireTimers(heard);
    this.isBusy = true;
    if (nic.nextDeadlineNs <= this.nowNs) nic.onDeadline(this.nowNs, firesTimers);
    return this.#send();
  }

  #send(): boolean {
    this.isBusy = true;
    const packets = this.#transmit();
    this.isBusy = false;
    return packets > 0;
  }

  #transmit(): number {
    const { nic } = this;
    if (!nic.hasWork) return 0;
    const batch = this.#port.beginBatch(this.nowNs);
    if (batch === undefined) return 0; // The kernel is behind: the next poll tries again.
    const packets = nic.transmit(batch, this.nowNs);
    this.#port.sendBatch(batch);
    if (packets >= TIMED_PACKETS) {
      const schedulingDelayNs = nowNs() - this.nowNs;
      if (schedulingDelayNs >= SCHEDULING_DELAY_MIN_NS) nic.onSchedulingDelay(this.nowNs, schedulingDelayNs);
    }
    return packets;
  }

  /**
   * Whether timers may fire in this poll: they do in the first one without new datagrams. A process that had to wait
   * for a processor finds its timers due and the answers in its socket. If it retransmitted without reading them, it
   * would get that many more answers.
   */
  #mayFireTimers(heard: number): boolean {
    if (this.nic.nextTimerNs > this.nowNs) {
      this.#heardSinceDue = NONE_DUE; // Or no timer is due: the datagrams that were read have answered it.
      return false;
    }
    if (this.#heardSinceDue === NONE_DUE) {
      this.#heardSinceDue = 0;
      return false;
    }
    this.#heardSinceDue += heard;
    if (heard > 0 && this.#heardSinceDue < ARRIVED_MAX) return false;
    this.#heardSinceDue = NONE_DUE;
    return true;
  }
}
