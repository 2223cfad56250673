/**
 * Go-back-N: the rule of the InfiniBand transport (IBTA vol. 1 §9.7.5) and the only scheme standard peers speak. The receiver drops
 * everything after a gap and names the missing PSN; the sender resumes there.
 */

import { AHEAD_NAK, REPLAY_REWIND, type ReceiverRecovery, type SenderRecovery } from './recovery.js';

export class GoBackNSender implements SenderRecovery {
  readonly goesBack = true;
  readonly restartsMessages: boolean = false;
  readonly spanMax = 1 << 22;

  reset(): void {}

  onLoss(first: number, _end: number, _messageStart: number, _next: number, _cause: number): number {
    return first;
  }

  markDelivered(): void {}

  markKept(): void {}

  isDelivered(_psn: number): boolean {
    return false;
  }

  advance(psn: number): number {
    return psn;
  }

  nextResend(_unacked: number, _next: number): number {
    return -1;
  }

  onResent(): void {}
}

export class GoBackNReceiver implements ReceiverRecovery {
  readonly replay: typeof REPLAY_REWIND = REPLAY_REWIND;
  readonly restartsReads: boolean = false;

  reset(): void {}

  onAhead(_psn: number, _distance: number, _bytes: Uint8Array, _offset: number, _length: number): number {
    return AHEAD_NAK;
  }

  restartsMessage(_psn: number, _messageStart: number): boolean {
    return false;
  }

  takeKept(): undefined {
    return undefined;
  }

  bitmapBytes(): number {
    return 0;
  }

  writeBitmap(): void {}
}
