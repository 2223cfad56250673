import type { LabChoices, LabSample, LabState } from '../messages/lab-messages.js';
import { formatBytes, formatCount, formatRate, formatShare } from './format.js';

export interface LabVerdict {
  readonly isBad: boolean;
  readonly title: string;
  readonly text: string;
}

const RANDOM_LOSS: Readonly<Partial<Record<LabSample['settings']['loss'], number>>> = {
  'random=0.001': 0.001,
  'random=0.01': 0.01,
};
const RULE_PERIOD = 256;

type Plan = Pick<LabState, 'messageBytes' | 'mtu'> & { readonly choices: Pick<LabChoices, 'schemeSummaries'> };

export function labVerdict(plan: Plan, sample: LabSample): LabVerdict {
  const { settings, linkBps, goodputBps, latency } = sample;
  if (linkBps === 0) return good('Nothing is on the link', 'A has sent no data in the last second.');
  if (goodputBps > 0) return delivers(plan, sample);
  if (settings.loss !== 'none' && settings.scheme === 'go-back-0') return livelock(plan, sample);
  const since =
    latency.count === 0
      ? 'No message has completed since the settings changed.'
      : 'No message has completed in the last second.';
  return good('No message is complete yet', `${since} A message is ${formatBytes(plan.messageBytes)}.`);
}

function livelock(plan: Plan, sample: LabSample): LabVerdict {
  return {
    isBad: true,
    title: 'Livelock: the link is busy, and nothing arrives',
    text:
      `Go-back-0 answers each loss by sending the whole message again, from its first packet. A message is ${packetsOf(plan)} packets, and ` +
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

function delivers({ choices }: Plan, sample: LabSample): LabVerdict {
  const { settings, goodputBps, linkBps, queueBytes } = sample;
  const useful = `${formatShare(Math.min(1, goodputBps / linkBps))} of what A sends is useful.`;
  if (settings.loss === 'none') {
    const queue =
      settings.link === 'fast' ? '' : ` The link to B is the bottleneck; ${formatBytes(queueBytes)} wait before it.`;
    return good('Messages arrive', `The switch loses nothing.${queue}`);
  }
  const { scheme } = settings;
  return good(
    'Messages arrive, and losses are repaired',
    `Recovery by ${scheme} (${choices.schemeSummaries[scheme]}). ${useful}`,
  );
}

function repeatedOf({ mtu }: Plan, { retransmittedPerSecond, linkBps }: LabSample): string {
  const share = Math.min(1, (retransmittedPerSecond * mtu * 8) / linkBps);
  return `Of the ${formatRate(linkBps)} that A sends, ${formatShare(share)} was sent before.`;
}

function packetsOf({ messageBytes, mtu }: Plan): number {
  return messageBytes / mtu;
}

function good(title: string, text: string): LabVerdict {
  return { isBad: false, title, text };
}
