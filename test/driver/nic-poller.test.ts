/**
 * When a poll fires timers. A process that had to wait for a processor finds them due and the answers in its socket: it reads before it
 * fires them, or it would retransmit what has been answered, and get as many answers more.
 */

import { performance } from 'node:perf_hooks';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { NicPoller } from '../../src/driver/nic-poller.js';
import type { Nic } from '../../src/nic/nic.js';
import type { Port, RxDatagram, TxBatch } from '../../src/port/datagram.js';

const NEVER = Number.POSITIVE_INFINITY;

/** A NIC whose timers and pacing are due when the test says so. */
class DueNic {
  nextTimerNs = NEVER;
  nextPacingNs = NEVER;
  hasWork = false;
  received = 0;
  timersFired = 0;
  paced = 0;

  get nextDeadlineNs(): number {
    return Math.min(this.nextTimerNs, this.nextPacingNs);
  }

  receive(): void {
    this.received++;
  }

  onDeadline(_now: number, timersToo: boolean): void {
    if (timersToo) {
      this.timersFired++;
      this.nextTimerNs = NEVER;
    }
    if (this.nextPacingNs === 0) this.paced++;
    this.nextPacingNs = NEVER;
  }
}

describe('a poller', () => {
  let nic: DueNic;
  let port: Pick<Port, 'onDatagram' | 'onPause'>;
  let poller: NicPoller;

  const arrives = (datagrams: number) => {
    for (let i = 0; i < datagrams; i++) port.onDatagram({} as RxDatagram);
  };

  beforeEach(() => {
    nic = new DueNic();
    port = { onDatagram: () => {}, onPause: () => {} };
    poller = new NicPoller(nic as unknown as Nic, port as Port, () => {});
  });

  it('fires a timer in the poll after the one that found it due, when nothing comes', () => {
    nic.nextTimerNs = 0;
    poller.poll();
    expect([poller.isReading, nic.timersFired]).toEqual([true, 0]);
    poller.poll();
    expect([poller.isReading, nic.timersFired]).toEqual([false, 1]);
  });

  it('reads everything first, and fires nothing that an answer has settled', () => {
    nic.nextTimerNs = 0;
    for (let poll = 0; poll < 20; poll++) {
      poller.poll();
      arrives(120);
    }
    expect([nic.received, nic.timersFired, poller.isReading]).toEqual([2400, 0, true]);
    nic.nextTimerNs = NEVER; // The answer was among them.
    poller.poll();
    expect([nic.timersFired, poller.isReading]).toEqual([0, false]);
    nic.nextTimerNs = 0; // Another timer: it gets the same patience.
    poller.poll();
    expect(nic.timersFired).toBe(0);
    poller.poll();
    expect(nic.timersFired).toBe(1);
  });

  it('fires timers under a flood as well: what arrives after the timer has run out is no answer in time', () => {
    nic.nextTimerNs = 0;
    let polls = 0;
    for (; nic.timersFired === 0 && polls < 1000; polls++) {
      poller.poll();
      arrives(120);
    }
    expect(nic.timersFired).toBe(1);
    expect(polls * 120).toBeGreaterThan(8000);
  });

  it('opens the pacer in the poll that finds it due, whatever the timers wait for', () => {
    nic.nextTimerNs = 0;
    nic.nextPacingNs = 0;
    poller.poll();
    expect([nic.paced, nic.timersFired]).toEqual([1, 0]);
  });

  describe('behind a batch', () => {
    let nowMs = 0;

    afterEach(() => {
      vi.restoreAllMocks();
    });

    /** What the NIC is told of a batch of so many packets when the process loses its processor for so long while it is made and sent. */
    const heldUp = (packets: number, ms: number) => {
      vi.spyOn(performance, 'now').mockImplementation(() => nowMs);
      const told: number[] = [];
      const sender = {
        nextTimerNs: NEVER,
        nextDeadlineNs: NEVER,
        hasWork: true,
        transmit: () => packets,
        onSchedulingDelay: (stampNs: number, schedulingDelayNs: number) =>
          told.push(stampNs - sending.nowNs, Math.round(schedulingDelayNs)),
      };
      const sendBatch = () => {
        nowMs += ms;
      };
      const slow = { beginBatch: () => ({ count: 0 }) as TxBatch, sendBatch, onDatagram: () => {}, onPause: () => {} };
      const sending = new NicPoller(sender as unknown as Nic, slow as unknown as Port, () => {});
      sending.poll();
      return told;
    };

    it('says how long it was held up, where its timers would begin too early', () => {
      expect(heldUp(8, 100)).toEqual([0, 100e6]);
      expect(heldUp(60, 1)).toEqual([0, 1e6]);
    });

    it('says nothing of one that left soon, nor of a short one: the clock is not read', () => {
      expect(heldUp(60, 0.9)).toEqual([]);
      expect(heldUp(7, 100)).toEqual([]);
      expect(heldUp(0, 100)).toEqual([]);
    });
  });
});
