/** The sliding-window memory pool compared with a request per block, by the code of `rocev2/window`. */

import { LINK_BPS } from './scenario-of.js';
import {
  type Explanation,
  FAIR_SHARE_MAX,
  type Outcome,
  type SimulatedScene,
  type Values,
  type Variant,
  WINDOW_POLICIES,
} from './scene.js';
import { bytesOf, nsOf } from './units.js';

const DURATION_MIN_NS = 1e6;
/** Delays of a link in the duration: acknowledgements come back ten times at least. */
const DELAYS = 80;
const LINKS_EACH_WAY = 2;
/** On the wire, of packets with 1,024 bytes of payload. */
const WIRE_PER_PAYLOAD = 1106 / 1024;
const GOOD_SHARE = 0.9;
export const WINDOW: SimulatedScene = {
  kind: 'simulated',
  name: 'window',
  parameters: [
    { name: 'delay', kind: 'slider', values: ['0.5 us', '2 us', '10 us', '50 us'], initial: '2 us' },
    { name: 'block', kind: 'slider', values: ['4 KiB', '16 KiB', '64 KiB', '256 KiB'], initial: '16 KiB' },
    { name: 'blocks', kind: 'slider', values: ['4', '16', '64'], initial: '16' },
  ],
  series: [
    { label: 'window.goodput', unit: 'rate', color: '--hue0' },
    { label: 'window.messages', unit: 'count', color: '--hue7', max: 2.5 },
  ],
  barMax: LINK_BPS,
  variants,
  explain,
};

function variants(values: Values, seed: number): readonly Variant[] {
  const delayNs = nsOf(values['delay']);
  const [blocks, blockBytes] = [Number(values['blocks']), bytesOf(values['block'])];
  return WINDOW_POLICIES.map((policy) => ({
    name: policy,
    durationNs: Math.max(DURATION_MIN_NS, DELAYS * delayNs),
    program: { policy, blocks, blockBytes, delayNs, seed },
  }));
}

function explain(values: Values, outcomes: readonly Outcome[]): Explanation {
  const shareOf = ({ means: [goodputBps] }: Outcome) => Math.min(1, (goodputBps / LINK_BPS) * WIRE_PER_PAYLOAD);
  const baseline = outcomes.find(({ name }) => name === 'baseline') ?? outcomes[0];
  const best = outcomes.reduce((most, one) => (shareOf(one) > shareOf(most) ? one : most));
  const nagle = outcomes.find(({ name }) => name === 'nagle') ?? best;
  const blockBytes = bytesOf(values['block']);
  const blockNs = (blockBytes * WIRE_PER_PAYLOAD * 8e9) / LINK_BPS;
  const [goodputBps] = baseline.means;
  const percent = (share: number) => (share * 100).toFixed(share < 0.1 ? 1 : 0);
  const roundTripNs = 2 * LINKS_EACH_WAY * nsOf(values['delay']);
  const numbers = {
    block: (blockNs / 1000).toFixed(1),
    wait: goodputBps === 0 ? '…' : (((blockBytes * 8e9) / goodputBps - blockNs) / 1000).toFixed(1),
    share: percent(shareOf(baseline)),
    best: percent(shareOf(best)),
    policy: best.name,
    messages: nagle.means[1].toFixed(2),
    blocks: values['blocks'],
    pool: ((Number(values['blocks']) * blockBytes) / 1000).toFixed(0),
    flight: ((roundTripNs * LINK_BPS) / 8e12).toFixed(0),
  };
  if (shareOf(baseline) >= GOOD_SHARE) {
    return { usefulShare: 1, title: 'window.even', text: 'window.even.text', numbers };
  }
  const usefulShare = Math.min(FAIR_SHARE_MAX, shareOf(baseline));
  return shareOf(best) < GOOD_SHARE
    ? { usefulShare, title: 'window.small', text: 'window.small.text', numbers }
    : { usefulShare, title: 'window.waiting', text: 'window.waiting.text', numbers };
}
