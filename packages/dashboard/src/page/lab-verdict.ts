import {
  formatBytes,
  formatCount,
  formatRate,
  formatShare,
  TRANSFER_TITLES,
  toneOfShare,
  type VerdictText,
} from '@rocev2/command/plot';
import type { LabChoices, LabSample, LabState } from '../messages/lab-messages.js';

const RANDOM_LOSS: Readonly<Partial<Record<LabSample['settings']['loss'], number>>> = {
  'random=0.001': 0.001,
  'random=0.01': 0.01,
};
const RULE_PERIOD = 256;

type Plan = Pick<LabState, 'messageBytes' | 'mtu'> & { readonly choices: Pick<LabChoices, 'schemeSummaries'> };

/** Samples of the same settings that a verdict covers, at four per second: few enough to follow a change. */
const SAMPLES_RATED = 16;

/** What the newest of `samples` shows, with the reason. There is at least one sample. */
export function labVerdict(plan: Plan, samples: readonly LabSample[]): VerdictText {
  const sample = samples[samples.length - 1];
  const { settings, linkBps, goodputBps, latency } = sample;
  if (linkBps === 0) return idle('Nothing is on the link', 'A has sent no data in the last second.');
  const share = usefulShare(plan, samples);
  if (goodputBps > 0 || share > 0) return delivers(plan, sample, share);
  if (settings.loss !== 'none' && settings.scheme === 'go-back-0') return livelock(plan, sample);
  const since =
    latency.count === 0
      ? 'No message has completed since the settings changed.'
      : 'No message has completed in the last second.';
  return idle('No message is complete yet', `${since} A message is ${formatBytes(plan.messageBytes)}.`);
}

/**
 * The share of the packets sent that belong to completed messages, 0 to 1. Several samples are needed because a message
 * completes only every few samples.
 */
function usefulShare(plan: Plan, samples: readonly LabSample[]): number {
  const last = samples[samples.length - 1];
  const other = samples.findLastIndex(({ settings }) => !isSame(settings, last.settings));
  const first = samples[Math.max(other + 1, samples.length - SAMPLES_RATED)];
  const sent = last.totals.packetsSent - first.totals.packetsSent;
  const useful = (last.totals.messages - first.totals.messages) * packetsOf(plan);
  return Math.min(1, sent > 0 ? useful / sent : last.goodputBps / last.linkBps);
}

function isSame(one: LabSample['settings'], other: LabSample['settings']): boolean {
  return Object.entries(one).every(([name, value]) => other[name as keyof typeof other] === value);
}

function livelock(plan: Plan, sample: LabSample): VerdictText {
  return {
    tone: 'bad',
    title: TRANSFER_TITLES.livelock,
    text:
      `Go-back-0 answers each loss by retransmitting the whole message, from its first packet. A message is ${packetsOf(plan)} packets, and ` +
      `${whatIsLost(plan, sample)}. ${repeatedOf(plan, sample)} Go-back-N or selective repeat (keys 2 and 3) would keep the packets that arrived.`,
  };
}

function whatIsLost(plan: Plan, { settings, queuePairs }: LabSample): string {
  const chance = RANDOM_LOSS[settings.loss];
  if (chance === undefined) {
    const ofAll = queuePairs.length > 1 ? ` of all ${queuePairs.length} queue pairs together` : '';
    return `the switch loses one packet in ${RULE_PERIOD}${ofAll}: a loss comes before the message is complete, every time`;
  }
  const whole = (1 - chance) ** packetsOf(plan);
  return `the switch loses ${formatShare(chance)} of them: one message in ${formatCount(Math.round(1 / whole))} gets through without a loss`;
}

function delivers({ choices }: Plan, sample: LabSample, share: number): VerdictText {
  const { settings, queueBytes } = sample;
  const tone = toneOfShare(share);
  const useful = `${formatShare(share)} of what A sends is useful.`;
  if (settings.loss === 'none') {
    const queue =
      settings.link === 'fast' ? '' : ` The link to B is the bottleneck; ${formatBytes(queueBytes)} wait before it.`;
    const title = tone === 'good' ? 'Messages arrive' : TRANSFER_TITLES[tone];
    return { tone, title, text: `The switch loses nothing. ${useful}${queue}` };
  }
  const { scheme } = settings;
  const text = `Recovery by ${scheme} (${choices.schemeSummaries[scheme]}). ${useful}`;
  return { tone, title: TRANSFER_TITLES[tone], text };
}

function repeatedOf({ mtu }: Plan, { retransmittedPerSecond, linkBps }: LabSample): string {
  const share = Math.min(1, (retransmittedPerSecond * mtu * 8) / linkBps);
  return `Of the ${formatRate(linkBps)} that A sends, ${formatShare(share)} was sent before.`;
}

function packetsOf({ messageBytes, mtu }: Plan): number {
  return messageBytes / mtu;
}

function idle(title: string, text: string): VerdictText {
  return { tone: 'idle', title, text };
}
