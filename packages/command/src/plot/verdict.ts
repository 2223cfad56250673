import { escapeXml } from './svg.js';

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

/** What a transfer comes to under losses. */
export const TRANSFER_TITLES: Readonly<Record<Exclude<Tone, 'idle'> | 'livelock', string>> = {
  livelock: 'Livelock: the link is busy, and nothing arrives',
  good: 'Messages arrive, and losses are repaired',
  fair: 'Messages arrive, but part of the link is wasted',
  bad: 'Few messages arrive: most of the link is wasted',
};

/** The sentence of a verdict as markup. */
export function verdictMarkup({ tone, title, text }: VerdictText): string {
  return `<p class="verdict ${tone}"><strong>${escapeXml(title)}</strong> <span>${escapeXml(text)}</span></p>`;
}
