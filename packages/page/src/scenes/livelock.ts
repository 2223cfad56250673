/** The livelock of go-back-0 (Guo et al., SIGCOMM'16, section 4.1): a busy link that delivers nothing. */

import type { ScenarioResult, ScenarioRun } from '@rocev2/lab/internal/page';
import { flowsOf, LINK_BPS, NIC, scenarioOf } from './scenario-of.js';
import {
  chosenOf,
  type Explanation,
  FAIR_SHARE_MAX,
  type Outcome,
  type SimulatedScene,
  type Values,
  type Variant,
} from './scene.js';
import { bytesOf } from './units.js';

const SCHEMES = ['go-back-0', 'go-back-n', 'selective-repeat', 'irn', 'rack', 'melo'] as const;
const DURATION_NS = 10e6;
/** Below this share of useful traffic a run makes no progress to speak of. */
const STUCK_SHARE = 0.01;
const GOOD_SHARE = 0.9;
export const LIVELOCK: SimulatedScene = {
  kind: 'simulated',
  name: 'livelock',
  parameters: [
    {
      name: 'schemes',
      kind: 'set',
      values: SCHEMES,
      initial: 'go-back-0,go-back-n,selective-repeat',
    },
    { name: 'loss', kind: 'slider', values: ['0', '0.0001', '0.001', '1/256', '0.01', '0.05'], initial: '1/256' },
    {
      name: 'message',
      kind: 'slider',
      values: ['4 KiB', '64 KiB', '256 KiB', '1 MiB', '4 MiB'],
      initial: '4 MiB',
    },
  ],
  series: [
    { label: 'livelock.goodput', unit: 'rate', color: '--hue0' },
    { label: 'livelock.link', unit: 'rate', color: '--hue1' },
  ],
  barMax: LINK_BPS,
  variants,
  explain,
};

function variants(values: Values, seed: number): readonly Variant[] {
  return chosenOf(SCHEMES, values['schemes']).map((scheme) => {
    const faults = faultsOf(values['loss']);
    return {
      name: scheme,
      scenario: scenarioOf({
        name: `livelock-${scheme}`,
        seed,
        duration: DURATION_NS,
        nic: { ...NIC, recovery: scheme },
        ...(faults !== undefined && { faults }),
        flows: [flowsOf({ from: 'h0', to: 'h1', message: bytesOf(values['message']), outstanding: 4 })],
      }),
      watch,
      means,
    };
  });
}

function faultsOf(loss: string): string | undefined {
  if (loss === '0') return undefined;
  return loss === '1/256' ? 'h0>h1:ip-id-lsb=0xff' : `h0>h1:random=${loss}`;
}

/** The goodput since the start, and the present rate of the link. */
function watch(run: ScenarioRun): () => readonly number[] {
  const cable = run.network.cables.get('h0>s0')!;
  let [linkBytes, atNs] = [0, 0];
  return () => {
    const done = run.flows.reduce((sum, flow) => sum + flow.doneBytes, 0);
    const link = cable.bytes + cable.frames * cable.frameOverheadBytes;
    const { nowNs } = run.events;
    const bps = (bytes: number) => (bytes * 8e9) / (nowNs - atNs);
    const rates = [(done * 8e9) / nowNs, bps(link - linkBytes)];
    [linkBytes, atNs] = [link, nowNs];
    return rates;
  };
}

/** The goodput leaves out the message that the end of the run cuts off. */
function means({ summary }: ScenarioResult, [, linkBps]: readonly number[]): readonly number[] {
  return [summary.goodputBps, linkBps];
}

function explain(values: Values, outcomes: readonly Outcome[]): Explanation {
  const shares = outcomes.map(({ means: [goodputBps, linkBps] }) => (linkBps === 0 ? 1 : goodputBps / linkBps));
  const usefulShare = Math.min(...shares);
  const scheme = outcomes[shares.indexOf(usefulShare)].name;
  const numbers = {
    scheme,
    share: (usefulShare * 100).toFixed(usefulShare < 0.1 ? 1 : 0),
    packets: String(bytesOf(values['message']) / NIC.mtu),
    loss: values['loss'],
  };
  const isRestarting = scheme === 'go-back-0' && usefulShare < STUCK_SHARE;
  if (isRestarting) return { usefulShare, title: 'livelock.stuck', text: 'livelock.stuck.text', numbers };
  return usefulShare < GOOD_SHARE
    ? {
        usefulShare: Math.min(usefulShare, FAIR_SHARE_MAX),
        title: 'livelock.part',
        text: 'livelock.part.text',
        numbers,
      }
    : { usefulShare, title: 'livelock.good', text: 'livelock.good.text', numbers };
}
