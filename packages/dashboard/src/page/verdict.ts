/** `idle`: there is nothing to rate. */
export type Tone = 'good' | 'fair' | 'bad' | 'idle';

export interface VerdictText {
  readonly tone: Tone;
  readonly title: string;
  readonly text: string;
}

/** From this share of useful packets on, a transfer is good. */
const GOOD_SHARE = 0.75;
/** Below this share of useful packets, a transfer is bad. */
const BAD_SHARE = 0.25;

/** The tone of a transfer by the share of its packets that is useful, 0 to 1. */
export function toneOfShare(share: number): Exclude<Tone, 'idle'> {
  if (share >= GOOD_SHARE) return 'good';
  return share >= BAD_SHARE ? 'fair' : 'bad';
}
