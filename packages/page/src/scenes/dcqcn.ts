/** DCQCN: packets and the fluid model (CoNEXT'16), with its phase margin, which is not monotonic in the flows. */

import {
  DCQCN_LONG_RAMP,
  DCQCN_SIGCOMM15,
  DcqcnModel,
  type DcqcnParameters,
  exactDcqcnLoop,
  phaseMargin,
  togetherAtStart,
} from '@rocev2/lab/fluid';
import type { ScenarioRun } from '@rocev2/lab/internal/page';
import { flowsOf, LINK_BPS, NIC, scenarioOf } from './scenario-of.js';
import type { Explanation, Outcome, SimulatedScene, Values, Variant } from './scene.js';
import { nsOf } from './units.js';

const DURATION_NS = 20e6;
/** Of packets with 1,024 bytes of payload. */
const WIRE_PER_PAYLOAD = 1106 / 1024;
/** A mark goes to the receiver, and the notification to the sender, over two links each. */
const LINKS_BOTH_WAYS = 4;
const QUEUE_MAX_BYTES = 1e6;
const FLOWS = ['2', '4', '8', '16', '32'] as const;
const RAMPS: Readonly<Record<string, DcqcnParameters>> = { '200 KB': DCQCN_SIGCOMM15, '2 MB': DCQCN_LONG_RAMP };

export const DCQCN: SimulatedScene = {
  kind: 'simulated',
  name: 'dcqcn',
  parameters: [
    { name: 'flows', kind: 'slider', values: FLOWS, initial: '4' },
    { name: 'delay', kind: 'slider', values: ['1 us', '5 us', '20 us', '50 us'], initial: '1 us' },
    { name: 'ramp', kind: 'choice', values: Object.keys(RAMPS), initial: '2 MB' },
  ],
  series: [
    { label: 'dcqcn.queue', unit: 'bytes', color: '--hue7', max: QUEUE_MAX_BYTES },
    { label: 'dcqcn.modelQueue', unit: 'bytes', color: '--hue4', max: QUEUE_MAX_BYTES },
    { label: 'dcqcn.rate', unit: 'rate', color: '--hue0' },
    { label: 'dcqcn.modelRate', unit: 'rate', color: '--hue5' },
  ],
  barMax: LINK_BPS,
  variants,
  explain,
};

function variants(values: Values, seed: number): readonly Variant[] {
  const flows = Number(values['flows']);
  const { kminBytes, kmaxBytes, pmax } = RAMPS[values['ramp']];
  return [
    {
      name: 'dcqcn',
      scenario: scenarioOf({
        name: 'dcqcn',
        seed,
        duration: DURATION_NS,
        topology: { kind: 'star', hosts: flows + 1, rate: LINK_BPS, delay: nsOf(values['delay']) },
        nic: { ...NIC, timeout: 14, cc: { name: 'dcqcn' } },
        switch: { queuePackets: 32_768, bufferPackets: 65_536, ecn: { kind: 'red', kminBytes, kmaxBytes, pmax } },
        flows: [flowsOf({ from: `h0..h${flows - 1}`, to: `h${flows}`, message: 65_536 })],
      }),
      watch: (run) => watch(run, values),
    },
  ];
}

function watch(run: ScenarioRun, values: Values): () => readonly number[] {
  const flows = Number(values['flows']);
  const node = run.network.switches.get('s0')!;
  const port = node.ports.indexOf(`h${flows}`);
  const model = new DcqcnModel({
    parameters: RAMPS[values['ramp']],
    groups: togetherAtStart(flows),
    delayNs: LINKS_BOTH_WAYS * nsOf(values['delay']),
  });
  let [sentBytes, atNs] = [0, 0];
  return () => {
    const { nowNs } = run.events;
    while (model.timeNs < nowNs) model.step();
    const sent = run.flows.reduce((sum, flow) => sum + flow.sentBytes, 0);
    const rateBps = ((sent - sentBytes) * 8e9) / (nowNs - atNs) / flows;
    [sentBytes, atNs] = [sent, nowNs];
    return [node.queuedBytes(port), model.queueBytes, rateBps, model.rateBps(0)];
  };
}

function explain(values: Values, [{ result, means }]: readonly Outcome[]): Explanation {
  const flows = Number(values['flows']);
  const margin = marginOf(values, flows);
  const margins = FLOWS.map((count) => marginOf(values, Number(count)));
  const worst = Math.min(...margins);
  const numbers = {
    flows: values['flows'],
    queue: (means[0] / 1000).toFixed(0),
    modelQueue: (means[1] / 1000).toFixed(0),
    margin: margin.toFixed(0),
    worst: worst.toFixed(0),
    worstFlows: FLOWS[margins.indexOf(worst)],
  };
  const usefulShare = Math.min(1, (result.summary.goodputBps / LINK_BPS) * WIRE_PER_PAYLOAD);
  return margin > 0
    ? { usefulShare, title: 'dcqcn.stable', text: 'dcqcn.stable.text', numbers }
    : { usefulShare: Math.min(usefulShare, 0.5), title: 'dcqcn.unstable', text: 'dcqcn.unstable.text', numbers };
}

/** In degrees; infinite where the loop has no crossover. */
function marginOf(values: Values, flows: number): number {
  const delaySeconds = LINKS_BOTH_WAYS * nsOf(values['delay']) * 1e-9;
  return phaseMargin(exactDcqcnLoop(RAMPS[values['ramp']], flows, delaySeconds))?.degrees ?? Number.POSITIVE_INFINITY;
}
