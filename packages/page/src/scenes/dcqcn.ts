/**
 * DCQCN and TIMELY: packets and the fluid models (CoNEXT'16), with the phase margin, which is not monotonic in the
 * flows.
 */

import {
  DCQCN_LONG_RAMP,
  DCQCN_SIGCOMM15,
  DcqcnModel,
  type DcqcnParameters,
  exactDcqcnLoop,
  type FluidModel,
  type OpenLoop,
  OriginalTimelyLaw,
  PATCHED_TIMELY_CONEXT16,
  PatchedTimelyLaw,
  patchedTimelyLoop,
  phaseMargin,
  TIMELY_SIGCOMM15,
  TimelyModel,
  togetherAtStart,
} from '@rocev2/lab/fluid';
import type { Scenario, ScenarioRun } from '@rocev2/lab/internal/page';
import { flowsOf, LINK_BPS, NIC, scenarioOf } from './scenario-of.js';
import {
  type Curve,
  type Explanation,
  FAIR_SHARE_MAX,
  type Outcome,
  type SimulatedScene,
  type Values,
  type Variant,
} from './scene.js';
import type { TextKey } from './texts.js';
import { nsOf } from './units.js';

/** Of packets with 1,024 bytes of payload. */
const WIRE_PER_PAYLOAD = 1106 / 1024;
/** A mark goes to the receiver, and the notification to the sender, over two links each. */
const LINKS_BOTH_WAYS = 4;
const QUEUE_MAX_BYTES = 1e6;
const FLOWS = ['2', '4', '8', '16', '32'] as const;
const CURVE_FLOWS = Array.from({ length: 32 }, (_, i) => 2 * (i + 1));
const CONTROLS = ['dcqcn', 'timely', 'patched-timely'] as const;
/** TIMELY takes steps of 10 Mb/s, one in 16 or 64 KB. */
const DURATIONS_NS = { dcqcn: 20e6, timely: 100e6, 'patched-timely': 100e6 } as const;
const RAMPS: Readonly<Record<string, DcqcnParameters>> = { '200 KB': DCQCN_SIGCOMM15, '2 MB': DCQCN_LONG_RAMP };

export const DCQCN: SimulatedScene = {
  kind: 'simulated',
  name: 'dcqcn',
  parameters: [
    { name: 'control', kind: 'choice', values: CONTROLS, initial: 'dcqcn' },
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
  curve,
  explain,
};

function controlOf(values: Values): (typeof CONTROLS)[number] {
  return values['control'] as (typeof CONTROLS)[number];
}

function linkBpsOf(values: Values): number {
  return controlOf(values) === 'dcqcn' ? LINK_BPS : TIMELY_SIGCOMM15.linkRateBps;
}

function variants(values: Values, seed: number): readonly Variant[] {
  const flows = Number(values['flows']);
  const control = controlOf(values);
  const { kminBytes, kmaxBytes, pmax } = RAMPS[values['ramp']];
  return [
    {
      name: control,
      scenario: scenarioOf({
        name: control,
        seed,
        duration: DURATIONS_NS[control],
        topology: { kind: 'star', hosts: flows + 1, rate: linkBpsOf(values), delay: nsOf(values['delay']) },
        nic: { ...NIC, timeout: 14, cc: rateControlOf(values) },
        switch: {
          queuePackets: 32_768,
          bufferPackets: 65_536,
          ...(control === 'dcqcn' && { ecn: { kind: 'red', kminBytes, kmaxBytes, pmax } as const }),
        },
        flows: [flowsOf({ from: `h0..h${flows - 1}`, to: `h${flows}`, message: 65_536 })],
      }),
      watch: (run) => watch(run, values),
    },
  ];
}

/** Flows of TIMELY begin with fair shares, as those of the model do. */
function rateControlOf(values: Values): Scenario['nic']['cc'] {
  const name = controlOf(values);
  if (name === 'dcqcn') return { name };
  const { linkRateBps, segmentBytes } = name === 'timely' ? TIMELY_SIGCOMM15 : PATCHED_TIMELY_CONEXT16;
  return { name, linkRateBps, segmentBytes, initialRateBps: linkRateBps / Number(values['flows']) };
}

function modelOf(values: Values): FluidModel {
  const groups = togetherAtStart(Number(values['flows']));
  const delayNs = LINKS_BOTH_WAYS * nsOf(values['delay']);
  switch (controlOf(values)) {
    case 'dcqcn':
      return new DcqcnModel({ parameters: RAMPS[values['ramp']], groups, delayNs });
    case 'timely':
      return new TimelyModel({
        parameters: TIMELY_SIGCOMM15,
        law: new OriginalTimelyLaw(TIMELY_SIGCOMM15),
        groups,
        delayNs,
      });
    case 'patched-timely':
      return new TimelyModel({
        parameters: PATCHED_TIMELY_CONEXT16,
        law: new PatchedTimelyLaw(PATCHED_TIMELY_CONEXT16),
        groups,
        delayNs,
      });
  }
}

function watch(run: ScenarioRun, values: Values): () => readonly number[] {
  const flows = Number(values['flows']);
  const node = run.network.switches.get('s0')!;
  const port = node.ports.indexOf(`h${flows}`);
  const model = modelOf(values);
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

/** Undefined for TIMELY, whose model has no fixed point. */
function loopOf(values: Values, flows: number): OpenLoop | undefined {
  const delaySeconds = LINKS_BOTH_WAYS * nsOf(values['delay']) * 1e-9;
  const control = controlOf(values);
  if (control === 'timely') return undefined;
  return control === 'dcqcn'
    ? exactDcqcnLoop(RAMPS[values['ramp']], flows, delaySeconds)
    : patchedTimelyLoop(PATCHED_TIMELY_CONEXT16, flows, delaySeconds);
}

/** In degrees; null where the loop has no crossover. */
function marginOf(values: Values, flows: number): number | null {
  const loop = loopOf(values, flows);
  return loop === undefined ? null : (phaseMargin(loop)?.degrees ?? null);
}

function curve(values: Values): Curve | undefined {
  if (controlOf(values) === 'timely') return undefined;
  return {
    label: 'dcqcn.margin',
    xLabel: 'dcqcn.flows',
    x: CURVE_FLOWS,
    formatY: (degrees) => `${degrees.toFixed(0)}°`,
    lines: [{ name: 'dcqcn.marginName' satisfies TextKey, y: CURVE_FLOWS.map((flows) => marginOf(values, flows)) }],
    at: Number(values['flows']),
  };
}

function explain(values: Values, [{ result, means }]: readonly Outcome[]): Explanation {
  const flows = Number(values['flows']);
  const usefulShare = Math.min(1, (result.summary.goodputBps / linkBpsOf(values)) * WIRE_PER_PAYLOAD);
  const queues = {
    flows: values['flows'],
    queue: (means[0] / 1000).toFixed(0),
    modelQueue: (means[1] / 1000).toFixed(0),
  };
  const unsteady = Math.min(usefulShare, FAIR_SHARE_MAX);
  if (controlOf(values) === 'timely') {
    return { usefulShare: unsteady, title: 'dcqcn.moving', text: 'dcqcn.moving.text', numbers: queues };
  }
  const margin = marginOf(values, flows) ?? Number.POSITIVE_INFINITY;
  const margins = FLOWS.map((count) => marginOf(values, Number(count)) ?? Number.POSITIVE_INFINITY);
  const worst = Math.min(...margins);
  const numbers = {
    ...queues,
    margin: margin.toFixed(0),
    worst: worst.toFixed(0),
    worstFlows: FLOWS[margins.indexOf(worst)],
  };
  return margin > 0
    ? { usefulShare, title: 'dcqcn.stable', text: 'dcqcn.stable.text', numbers }
    : { usefulShare: unsteady, title: 'dcqcn.unstable', text: 'dcqcn.unstable.text', numbers };
}
