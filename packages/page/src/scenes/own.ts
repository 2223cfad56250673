/** A rate control or a recovery scheme of the user, compared with built-in ones. */

import type { Scenario, ScenarioResult, ScenarioRun } from '@rocev2/lab/internal/page';
import { RATE_CONTROL_EXAMPLE, RECOVERY_EXAMPLE } from './own-examples.js';
import { flowsOf, LINK_BPS, NIC, scenarioOf } from './scenario-of.js';
import {
  type Explanation,
  FAIR_SHARE_MAX,
  type Outcome,
  type OwnScheme,
  type SimulatedScene,
  type Values,
  type Variant,
} from './scene.js';

const KINDS = ['rate control', 'recovery scheme'] as const;
const OWN_NAME = 'own';
const FLOWS = 4;
const CONTROLS = ['dcqcn', 'timely', 'swift'] as const;
const CONTROL_NS = 5e6;
const SCHEMES = ['go-back-n', 'selective-repeat'] as const;
const RECOVERY_NS = 2e6;
const QUEUE_MAX_BYTES = 1e6;
/** Of the best built-in scheme. */
const GOOD_SHARE = 0.95;
export const OWN: SimulatedScene = {
  kind: 'simulated',
  name: 'own',
  parameters: [
    { name: 'kind', kind: 'choice', values: KINDS, initial: 'rate control' },
    { name: 'code', kind: 'code', values: [], initial: '', example: exampleOf },
  ],
  series: [
    { label: 'own.goodput', unit: 'rate', color: '--hue0' },
    { label: 'own.queue', unit: 'bytes', color: '--hue7', max: QUEUE_MAX_BYTES },
  ],
  barMax: LINK_BPS,
  variants,
  explain,
};

function exampleOf(values: Values): string {
  return values['kind'] === 'rate control' ? RATE_CONTROL_EXAMPLE : RECOVERY_EXAMPLE;
}

function variants(values: Values, seed: number): readonly Variant[] {
  const kind = values['kind'] as OwnScheme['kind'];
  const own = { kind, code: values['code'] === '' ? exampleOf(values) : values['code'] };
  const builtIn =
    kind === 'rate control'
      ? CONTROLS.map((name) => ({ name, scenario: controlScenario(name, seed), watch, means }))
      : SCHEMES.map((name) => ({ name, scenario: recoveryScenario(name, seed), watch, means }));
  return [{ ...builtIn[0], name: OWN_NAME, own }, ...builtIn];
}

function controlScenario(name: (typeof CONTROLS)[number], seed: number): Scenario {
  return scenarioOf({
    name: 'own',
    seed,
    duration: CONTROL_NS,
    topology: { kind: 'star', hosts: FLOWS + 1, rate: LINK_BPS, delay: 1000 },
    nic: { ...NIC, timeout: 14, cc: { name } },
    switch: {
      queuePackets: 32_768,
      bufferPackets: 65_536,
      ecn: { kind: 'red', kminBytes: 5_000, kmaxBytes: 2_000_000, pmax: 0.1 },
    },
    flows: [flowsOf({ from: `h0..h${FLOWS - 1}`, to: `h${FLOWS}`, message: 65_536 })],
  });
}

function recoveryScenario(name: (typeof SCHEMES)[number], seed: number): Scenario {
  return scenarioOf({
    name: 'own',
    seed,
    duration: RECOVERY_NS,
    topology: { kind: 'star', hosts: 2, rate: LINK_BPS, delay: 2000 },
    nic: { ...NIC, recovery: name },
    faults: 'h0>s0:random=0.01',
    flows: [flowsOf({ from: 'h0', to: 'h1', message: 65_536, outstanding: 8 })],
  });
}

/** The goodput since the start, and the queue to the receiver. */
function watch({ network, flows, events }: ScenarioRun): () => readonly number[] {
  const node = network.switches.get('s0')!;
  const port = node.ports.indexOf(flows[0].plan.to);
  return () => {
    const done = flows.reduce((sum, flow) => sum + flow.doneBytes, 0);
    return [(done * 8e9) / events.nowNs, node.queuedBytes(port)];
  };
}

/** The goodput of the whole run. */
function means({ summary }: ScenarioResult, [, queue]: readonly number[]): readonly number[] {
  return [summary.goodputBps, queue];
}

function explain(_values: Values, outcomes: readonly Outcome[]): Explanation {
  const own = outcomes.find(({ name }) => name === OWN_NAME) ?? outcomes[0];
  const others = outcomes.filter((one) => one !== own).sort((a, b) => b.means[0] - a.means[0]);
  const best = others.at(0) ?? own;
  const gbps = ({ means }: Outcome) => (means[0] / 1e9).toFixed(1);
  const kb = ({ means }: Outcome) => (means[1] / 1000).toFixed(0);
  const numbers = { own: gbps(own), queue: kb(own), best: best.name, other: gbps(best), otherQueue: kb(best) };
  const share = best.means[0] === 0 ? 1 : own.means[0] / best.means[0];
  return share >= GOOD_SHARE
    ? { usefulShare: 1, title: 'own.more', text: 'own.text', numbers }
    : { usefulShare: Math.min(share, FAIR_SHARE_MAX), title: 'own.less', text: 'own.text', numbers };
}
