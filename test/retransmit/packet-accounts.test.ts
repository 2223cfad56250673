/** What the package exports for a recovery scheme of a program: a subclass reads and changes the state of each packet. */

import { describe, expect, it } from 'vitest';
import {
  NO_REWIND,
  PACKET_DELIVERED,
  PACKET_LOST,
  PACKET_OUTSTANDING,
  PACKET_RESENT,
  PACKET_SACKED,
  PacketAccounts,
  SELECTIVE_SPAN,
  SPAN_MASK,
} from '../../src/index.js';

/** Takes each packet for lost that a reported gap covers. */
class EagerSender extends PacketAccounts {
  override onLoss(first: number, end: number): number {
    for (let psn = first; psn !== end; psn = (psn + 1) & 0xffffff) {
      if (this.stateOf(psn) === PACKET_OUTSTANDING) this.markLost(psn);
    }
    return NO_REWIND;
  }

  stateOf(psn: number): number {
    return this.state[psn & SPAN_MASK];
  }
}

const FIRST = 0xfffffe;

function states(sender: EagerSender, count: number): number[] {
  return Array.from({ length: count }, (_, i) => sender.stateOf((FIRST + i) & 0xffffff));
}

describe('a scheme that extends PacketAccounts', () => {
  it('has one state for each packet, around the end of the PSNs', () => {
    const sender = new EagerSender();
    sender.reset(FIRST);
    sender.markDelivered(FIRST + 1);
    sender.markSacked(0);
    expect(states(sender, 4)).toEqual([PACKET_OUTSTANDING, PACKET_DELIVERED, PACKET_SACKED, PACKET_OUTSTANDING]);
    expect(sender.arrived).toBe(2);
  });

  it('decides what is lost and sends that again, and nothing else', () => {
    const sender = new EagerSender();
    sender.reset(FIRST);
    sender.markSacked(0);
    expect(sender.nextResend(FIRST, 2)).toBe(-1);
    expect(sender.onLoss(FIRST, 1)).toBe(NO_REWIND);
    expect(states(sender, 4)).toEqual([PACKET_LOST, PACKET_LOST, PACKET_SACKED, PACKET_OUTSTANDING]);
    sender.onResent(sender.nextResend(FIRST, 2), 2);
    expect(sender.stateOf(FIRST)).toBe(PACKET_RESENT);
    expect(sender.nextResend(FIRST, 2)).toBe(FIRST + 1);
  });

  it('frees the slot of a packet that is done for the one a span later', () => {
    const sender = new EagerSender();
    sender.reset(0);
    sender.markDelivered(0);
    expect(sender.advance(0)).toBe(1);
    expect(sender.stateOf(SELECTIVE_SPAN)).toBe(PACKET_OUTSTANDING);
  });
});
