/** Marks (ECN) and delay as signals of congestion: queue, fairness, and what jitter does to them. */

import type { ScenarioRun } from '@rocev2/lab/internal/page';
import { flowsOf, LINK_BPS, NIC, scenarioOf } from './scenario-of.js';
import { chosenOf, type Explanation, type Outcome, type SimulatedScene, type Values, type Variant } from './scene.js';
import { nsOf } from './units.js';

const CONTROLS = ['dcqcn', 'timely', 'patched-timely', 'swift'] as const;
const DURATION_NS = 10e6;
const QUEUE_MAX_BYTES = 1e6;
/** Jain's index from which shares are fair. */
/** A control that uses less of the link leaves it idle. */
const BUSY_SHARE = 0.5;
const FAIR = 0.9;

export const SIGNALS: SimulatedScene = {
  kind: 'simulated',
  name: 'signals',
  parameters: [
    { name: 'controls', kind: 'set', values: CONTROLS, initial: 'dcqcn,timely,swift' },
    { name: 'flows', kind: 'slider', values: ['2', '4', '8', '16'], initial: '4' },
    { name: 'jitter', kind: 'slider', values: ['0 us', '10 us', '50 us', '100 us'], initial: '0 us' },
  ],
  series: [
    { label: 'signals.queue', unit: 'bytes', color: '--hue7', max: QUEUE_MAX_BYTES },
    { label: 'signals.slowest', unit: 'rate', color: '--hue1' },
    { label: 'signals.fastest', unit: 'rate', color: '--hue0' },
  ],
  barMax: LINK_BPS,
  variants,
  explain,
};

function variants(values: Values, seed: number): readonly Variant[] {
  const flows = Number(values['flows']);
  const jitterNs = nsOf(values['jitter']);
  return chosenOf(CONTROLS, values['controls']).map((name) => ({
    name,
    scenario: scenarioOf({
      name: `signals-${name}`,
      seed,
      duration: DURATION_NS,
      topology: { kind: 'star', hosts: flows + 1, rate: LINK_BPS, delay: 1000 },
      nic: { ...NIC, timeout: 14, cc: { name } },
      switch: {
        queuePackets: 32_768,
        bufferPackets: 65_536,
        ecn: { kind: 'red', kminBytes: 5_000, kmaxBytes: 2_000_000, pmax: 0.1 },
      },
      // Acknowledgements and notifications come late, by a different time each.
      ...(jitterNs > 0 && { faults: `h${flows}>*:every=1,delay=${jitterNs}ns,${jitterNs}ns` }),
      flows: [flowsOf({ from: `h0..h${flows - 1}`, to: `h${flows}`, message: 65_536 })],
    }),
    watch: (run: ScenarioRun) => watch(run, flows),
  }));
}

function watch(run: ScenarioRun, flows: number): () => readonly number[] {
  const node = run.network.switches.get('s0')!;
  const port = node.ports.indexOf(`h${flows}`);
  const before = new Float64Array(flows);
  let atNs = 0;
  return () => {
    const { nowNs } = run.events;
    const rates = run.flows.map(({ sentBytes }, i) => ((sentBytes - before[i]) * 8e9) / (nowNs - atNs));
    for (const [i, { sentBytes }] of run.flows.entries()) before[i] = sentBytes;
    atNs = nowNs;
    return [node.queuedBytes(port), Math.min(...rates), Math.max(...rates)];
  };
}

function explain(values: Values, outcomes: readonly Outcome[]): Explanation {
  const [least] = [...outcomes].sort((a, b) => a.result.summary.jain - b.result.summary.jain);
  const [fullest] = [...outcomes].sort((a, b) => b.means[0] - a.means[0]);
  const { jain } = least.result.summary;
  const numbers = {
    unfair: least.name,
    jain: jain.toFixed(2),
    fullest: fullest.name,
    queue: (fullest.means[0] / 1000).toFixed(0),
    jitter: values['jitter'],
  };
  const [slowest] = [...outcomes].sort((a, b) => a.result.summary.goodputBps - b.result.summary.goodputBps);
  const share = slowest.result.summary.goodputBps / LINK_BPS;
  if (share < BUSY_SHARE) {
    const idle = { ...numbers, slow: slowest.name, share: (share * 100).toFixed(0) };
    return { usefulShare: share, title: 'signals.idle', text: 'signals.idle.text', numbers: idle };
  }
  return jain < FAIR
    ? { usefulShare: jain / 2, title: 'signals.unfair', text: 'signals.unfair.text', numbers }
    : { usefulShare: 1, title: 'signals.fair', text: 'signals.fair.text', numbers };
}
