import { describe, expect, it } from 'vitest';
import { readU32 } from '../../src/core/bytes.js';
import { RC_READ_REQUEST } from '../../src/packet/opcode.js';
import { psnAdd } from '../../src/packet/psn.js';
import { emitRoce } from '../../src/packet/roce.js';
import { GoBack0Receiver, GoBack0Sender } from '../../src/retransmit/go-back-0.js';
import { GoBackNReceiver, GoBackNSender } from '../../src/retransmit/go-back-n.js';
import { SELECTIVE_SPAN } from '../../src/retransmit/packet-accounts.js';
import {
  AHEAD_BUFFERED,
  AHEAD_CONFLICT,
  AHEAD_DROPPED,
  AHEAD_NAK,
  AHEAD_RESTART_MESSAGE,
  LOSS_REPORTED,
  LOSS_TIMEOUT,
  NO_REWIND,
} from '../../src/retransmit/recovery.js';
import {
  createReceiver,
  createSender,
  packRecovery,
  type RecoveryName,
  recoveryNames,
  recoverySettings,
  unpackRecovery,
} from '../../src/retransmit/recovery-schemes.js';
import { SelectiveRepeatReceiver, SelectiveRepeatSender } from '../../src/retransmit/selective-repeat.js';
import { ackTimeoutNs } from '../../src/retransmit/timers.js';

const NO_BYTES = new Uint8Array(0);

describe('schemes by name', () => {
  it.each(recoveryNames())('%s crosses the command ring and makes both halves', (name) => {
    const packed = packRecovery(name);
    const settings = unpackRecovery(packed.name, packed.block);
    expect(settings).toEqual(recoverySettings(name));
    expect(createSender(settings).restartsMessages).toBe(createReceiver(settings).restartsReads);
  });

  it('an unknown name is refused with the known ones', () => {
    for (const use of [recoverySettings, packRecovery]) {
      expect(() => use('go-back-1' as RecoveryName)).toThrow(
        expect.objectContaining({
          code: 'ERR_ROCE_UNKNOWN_NAME',
          message: expect.stringContaining('go-back-n, go-back-0, selective-repeat'),
        }),
      );
    }
  });

  it('the acknowledgement timeout is 4.096 us times a power of two, and 0 means never', () => {
    expect([0, 1, 14, 31].map(ackTimeoutNs)).toEqual([Number.POSITIVE_INFINITY, 8192, 67_108_864, 4096 * 2 ** 31]);
  });
});

describe('go-back schemes', () => {
  it('go-back-N resumes at the first missing packet, go-back-0 at the start of its message', () => {
    expect(new GoBackNSender().onLoss(12, 20, 7, 20, LOSS_REPORTED)).toBe(12);
    expect(new GoBack0Sender().onLoss(12, 20, 7, 20, LOSS_REPORTED)).toBe(7);
  });

  it('send nothing out of turn, and know no delivered packets behind a gap', () => {
    for (const sender of [new GoBackNSender(), new GoBack0Sender()]) {
      sender.reset(3);
      sender.markDelivered(5);
      sender.markSacked(5);
      sender.onLoss(3, 9, 3, 9, LOSS_TIMEOUT);
      expect(sender.nextResend(3, 9)).toBe(-1);
      expect(sender.isDelivered(5)).toBe(false);
      expect(sender.advance(4)).toBe(4);
    }
  });

  it('go-back-N drops what comes behind a gap, go-back-0 forgets the message as well', () => {
    expect(new GoBackNReceiver().onAhead(9, 2, NO_BYTES, 0, 0)).toBe(AHEAD_NAK);
    expect(new GoBack0Receiver().onAhead(9, 2, NO_BYTES, 0, 0)).toBe(AHEAD_RESTART_MESSAGE);
    expect(new GoBackNReceiver().takeBuffered(7)).toBeUndefined();
  });

  it('only go-back-0 lets a packet start the message in progress over', () => {
    expect(new GoBack0Receiver().restartsMessage(7, 7)).toBe(true);
    expect(new GoBack0Receiver().restartsMessage(8, 7)).toBe(false);
    expect(new GoBackNReceiver().restartsMessage(7, 7)).toBe(false);
  });
});

/** Selective repeat, sender: packets `first` on are in flight, `count` of them. */
function senderWith(first: number) {
  const sender = new SelectiveRepeatSender();
  sender.reset(first);
  const resends = (unacked: number, next: number) => {
    const order: number[] = [];
    for (let psn = sender.nextResend(unacked, next); psn >= 0; psn = sender.nextResend(unacked, next)) {
      order.push(psn);
      sender.onResent(psn, next);
    }
    return order;
  };
  return { sender, resends };
}

describe('selective repeat, sender', () => {
  it('never rewinds', () => {
    expect(new SelectiveRepeatSender().onLoss(1, 5, 0, 9, LOSS_REPORTED)).toBe(NO_REWIND);
  });

  it.each([0, 500, 0xfffffc])('sends again what is missing, once and in order, from PSN %i', (base) => {
    const { sender, resends } = senderWith(base);
    const at = (k: number) => psnAdd(base, k);
    for (const k of [2, 5]) sender.markSacked(at(k));
    sender.onLoss(base, at(6), base, at(8), LOSS_REPORTED);
    expect(resends(base, at(8))).toEqual([0, 1, 3, 4].map(at));
    sender.onLoss(base, at(6), base, at(8), LOSS_REPORTED);
    expect(resends(base, at(8))).toEqual([]);
  });

  it('counts a second copy as lost only when something sent after it arrived, or at a timeout', () => {
    const { sender, resends } = senderWith(0);
    sender.markSacked(1);
    sender.onLoss(0, 2, 0, 4, LOSS_REPORTED);
    expect(resends(0, 4)).toEqual([0]);
    sender.markSacked(3); // Sent before the second copy: proves nothing.
    sender.onLoss(0, 4, 0, 5, LOSS_REPORTED);
    expect(resends(0, 5)).toEqual([2]);
    sender.markSacked(4); // Sent after it.
    sender.onLoss(0, 5, 0, 5, LOSS_REPORTED);
    expect(resends(0, 5)).toEqual([0]);
    sender.onLoss(0, 5, 0, 5, LOSS_TIMEOUT);
    expect(resends(0, 5)).toEqual([0, 2]);
  });

  it('a kept packet is neither sent again nor done', () => {
    const { sender, resends } = senderWith(10);
    sender.markSacked(11);
    sender.onLoss(10, 13, 10, 13, LOSS_TIMEOUT);
    expect(resends(10, 13)).toEqual([10, 12]);
    expect(sender.isDelivered(11)).toBe(false);
    expect(sender.advance(11)).toBe(11);
  });

  it('a kept packet that the receiver asks for after all is sent again', () => {
    const { sender, resends } = senderWith(10);
    sender.markSacked(11);
    sender.onLoss(11, 12, 10, 13, LOSS_REPORTED);
    expect(resends(11, 13)).toEqual([11]);
  });

  it('passes delivered answers when what stood before them is done', () => {
    const { sender } = senderWith(20);
    for (const psn of [21, 22, 24]) sender.markDelivered(psn);
    expect(sender.advance(20)).toBe(20);
    expect(sender.advance(21)).toBe(23);
    expect(sender.isDelivered(24)).toBe(true);
    expect(sender.advance(24)).toBe(25);
  });

  it('uses the account of a PSN again one span later, with nothing left in it', () => {
    const { sender, resends } = senderWith(0);
    for (let psn = 0; psn < SELECTIVE_SPAN; psn++) sender.markDelivered(psn);
    expect(sender.advance(0)).toBe(SELECTIVE_SPAN);
    expect(sender.isDelivered(SELECTIVE_SPAN)).toBe(false);
    sender.onLoss(SELECTIVE_SPAN, 2 * SELECTIVE_SPAN, 0, 2 * SELECTIVE_SPAN, LOSS_TIMEOUT);
    expect(resends(SELECTIVE_SPAN, 2 * SELECTIVE_SPAN)).toHaveLength(SELECTIVE_SPAN);
  });

  it('forgets losses that are acknowledged before they are sent again', () => {
    const { sender } = senderWith(0);
    sender.onLoss(0, 4, 0, 4, LOSS_TIMEOUT);
    sender.advance(4);
    expect(sender.nextResend(4, 4 + SELECTIVE_SPAN)).toBe(-1);
  });
});

describe('selective repeat, receiver', () => {
  const EXPECTED = 0xfffffe;
  const keep = (receiver: SelectiveRepeatReceiver, distance: number, text = `packet ${distance}`) => {
    const bytes = Buffer.from(`..${text}..`);
    return receiver.onAhead(psnAdd(EXPECTED, distance), distance, bytes, 2, text.length);
  };
  const textOf = (receiver: SelectiveRepeatReceiver, distance: number) => {
    const kept = receiver.takeBuffered(psnAdd(EXPECTED, distance));
    return kept === undefined ? undefined : Buffer.from(kept.bytes.subarray(0, kept.length)).toString();
  };

  it('keeps packets ahead of a gap, across the wrap, and gives each once', () => {
    const receiver = new SelectiveRepeatReceiver();
    for (const distance of [1, 3, 700]) expect(keep(receiver, distance)).toBe(AHEAD_BUFFERED);
    expect([0, 1, 2, 3, 700, 700].map((distance) => textOf(receiver, distance))).toEqual([
      undefined,
      'packet 1',
      undefined,
      'packet 3',
      'packet 700',
      undefined,
    ]);
  });

  it('keeps one of two copies, which may differ in AckReq and congestion bits', () => {
    const receiver = new SelectiveRepeatReceiver();
    keep(receiver, 1, 'BTH 4567 ... and data and ICRC');
    expect(keep(receiver, 1, 'BTH !567!... and data and icrc')).toBe(AHEAD_BUFFERED);
    expect(textOf(receiver, 1)).toBe('BTH 4567 ... and data and ICRC');
    expect(receiver.bitmapBytes(EXPECTED)).toBe(0);
  });

  it('keeps neither of two packets that disagree, and takes the next', () => {
    const receiver = new SelectiveRepeatReceiver();
    for (const [one, other] of [
      ['one text', 'another of that PSN'],
      ['data one ICRC', 'data two ICRC'],
    ]) {
      keep(receiver, 2, 'beside it');
      expect(keep(receiver, 1, one)).toBe(AHEAD_BUFFERED);
      expect(keep(receiver, 1, other)).toBe(AHEAD_CONFLICT);
      expect(receiver.bitmapBytes(EXPECTED)).toBe(4); // The one beside it.
      expect(textOf(receiver, 1)).toBeUndefined();
      expect(keep(receiver, 1, other)).toBe(AHEAD_BUFFERED);
      expect(textOf(receiver, 1)).toBe(other);
      expect(textOf(receiver, 2)).toBe('beside it');
    }
  });

  it('knows a late copy from something else', () => {
    const receiver = new SelectiveRepeatReceiver();
    const differs = (text: string) =>
      receiver.isConflictingDuplicate(psnAdd(EXPECTED, 1), Buffer.from(text), 0, text.length);
    expect(differs('data one ICRC')).toBe(false); // Nothing to compare with.
    keep(receiver, 1, 'data one ICRC');
    expect(textOf(receiver, 1)).toBe('data one ICRC');
    expect([differs('data one icrc'), differs('data two ICRC'), differs('data')]).toEqual([false, true, true]);
  });

  it('of a READ that is asked for twice keeps the smaller one', () => {
    const receiver = new SelectiveRepeatReceiver();
    const read = (dmaLength: number) => emitRoce({ opcode: RC_READ_REQUEST, psn: 1, destQpn: 2, dmaLength });
    const ask = (bytes: Uint8Array) => {
      const packet = Buffer.concat([bytes, Buffer.alloc(4)]);
      return receiver.onAhead(psnAdd(EXPECTED, 1), 1, packet, 0, packet.length);
    };
    for (const [first, second] of [
      [8192, 1024],
      [1024, 8192],
    ]) {
      expect([ask(read(first)), ask(read(second))]).toEqual([AHEAD_BUFFERED, AHEAD_BUFFERED]);
      expect(readU32(receiver.takeBuffered(psnAdd(EXPECTED, 1))!.bytes, 24)).toBe(1024);
    }
    expect(receiver.bitmapBytes(EXPECTED)).toBe(0);
  });

  it('keeps no more than the window lets the peer have in flight', () => {
    const receiver = new SelectiveRepeatReceiver();
    receiver.reset(64);
    expect([63, 64].map((distance) => keep(receiver, distance))).toEqual([AHEAD_BUFFERED, AHEAD_DROPPED]);
    receiver.reset(1_000_000);
    expect(keep(receiver, SELECTIVE_SPAN)).toBe(AHEAD_DROPPED);
  });

  it('is bounded: what lies a span ahead is dropped and changes nothing', () => {
    const receiver = new SelectiveRepeatReceiver();
    expect(keep(receiver, SELECTIVE_SPAN - 1)).toBe(AHEAD_BUFFERED);
    for (const distance of [SELECTIVE_SPAN, SELECTIVE_SPAN + 1, 0x7fffff]) {
      expect(keep(receiver, distance)).toBe(AHEAD_DROPPED);
    }
    expect(textOf(receiver, SELECTIVE_SPAN - 1)).toBe(`packet ${SELECTIVE_SPAN - 1}`);
    expect(receiver.bitmapBytes(EXPECTED)).toBe(0);
  });

  it('keeps whole packets of the largest path MTU, and nothing longer', () => {
    const receiver = new SelectiveRepeatReceiver();
    const bytes = new Uint8Array(65_507);
    expect(receiver.onAhead(psnAdd(EXPECTED, 1), 1, bytes, 0, 4096 + 36)).toBe(AHEAD_BUFFERED);
    expect(receiver.onAhead(psnAdd(EXPECTED, 2), 2, bytes, 0, bytes.length)).toBe(AHEAD_DROPPED);
    expect(receiver.takeBuffered(psnAdd(EXPECTED, 1))?.length).toBe(4096 + 36);
    expect(receiver.takeBuffered(psnAdd(EXPECTED, 2))).toBeUndefined();
  });

  it('reports bit i for PSN expected + 1 + i, in whole words, at most 128 bytes', () => {
    const receiver = new SelectiveRepeatReceiver();
    expect(receiver.bitmapBytes(EXPECTED)).toBe(0);
    for (const distance of [1, 2, 9]) keep(receiver, distance);
    const bitmap = new Uint8Array(8).fill(0xee);
    expect(receiver.bitmapBytes(EXPECTED)).toBe(4);
    receiver.writeBitmap(EXPECTED, bitmap, 2, 4);
    expect([...bitmap]).toEqual([0xee, 0xee, 0b0000_0011, 0b0000_0001, 0, 0, 0xee, 0xee]);
    keep(receiver, 33);
    expect(receiver.bitmapBytes(EXPECTED)).toBe(8);
    keep(receiver, SELECTIVE_SPAN - 1);
    expect(receiver.bitmapBytes(EXPECTED)).toBe(128);
  });

  it('never takes a packet that was stepped over for the one a span later', () => {
    const receiver = new SelectiveRepeatReceiver();
    keep(receiver, 3);
    const later = psnAdd(EXPECTED, SELECTIVE_SPAN);
    expect(receiver.bitmapBytes(later)).toBe(0);
    expect(receiver.takeBuffered(psnAdd(later, 3))).toBeUndefined();
    keep(receiver, 3);
    expect(receiver.onAhead(psnAdd(later, 3), 3, Buffer.from('new'), 0, 3)).toBe(AHEAD_BUFFERED);
    expect(receiver.bitmapBytes(later)).toBe(4);
    expect(receiver.takeBuffered(psnAdd(later, 3))).toMatchObject({ length: 3 });
    expect(receiver.bitmapBytes(later)).toBe(0);
  });

  it('forgets everything at reset', () => {
    const receiver = new SelectiveRepeatReceiver();
    for (const distance of [1, 5]) keep(receiver, distance);
    receiver.reset(SELECTIVE_SPAN);
    expect(receiver.bitmapBytes(EXPECTED)).toBe(0);
    expect(textOf(receiver, 1)).toBeUndefined();
  });
});
