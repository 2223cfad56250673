/** Many senders to one receiver, with and without pause frames (PFC). */

import type { ScenarioRun } from '@rocev2/lab/internal/page';
import { flowsOf, LINK_BPS, NIC, scenarioOf } from './scenario-of.js';
import {
  type Explanation,
  FAIR_SHARE_MAX,
  type Outcome,
  type SimulatedScene,
  type Values,
  type Variant,
} from './scene.js';

const DURATION_NS = 5e6;
/** Short, so that completions are dense in time. */
const MESSAGE_BYTES = 8192;
const BUFFER_BYTES = 720_000;

export const INCAST: SimulatedScene = {
  kind: 'simulated',
  name: 'incast',
  parameters: [
    { name: 'senders', kind: 'slider', values: ['2', '4', '8', '16'], initial: '8' },
    { name: 'recovery', kind: 'choice', values: ['go-back-n', 'selective-repeat', 'irn'], initial: 'go-back-n' },
    { name: 'pfc', kind: 'set', values: ['PFC', 'no PFC'], initial: 'PFC,no PFC' },
  ],
  series: [
    { label: 'incast.goodput', unit: 'rate', color: '--hue0' },
    { label: 'incast.sent', unit: 'rate', color: '--hue1' },
    { label: 'incast.queue', unit: 'bytes', color: '--hue7', max: BUFFER_BYTES },
  ],
  barMax: LINK_BPS,
  variants,
  explain,
};

function variants(values: Values, seed: number): readonly Variant[] {
  const senders = Number(values['senders']);
  const recovery = values['recovery'] as 'go-back-n' | 'selective-repeat' | 'irn';
  return values['pfc'].split(',').map((name) => ({
    name,
    scenario: scenarioOf({
      name: `incast-${name === 'PFC' ? 'pfc' : 'lossy'}`,
      seed,
      duration: DURATION_NS,
      topology: { kind: 'star', hosts: senders + 1, rate: LINK_BPS, delay: 2000 },
      nic: { ...NIC, recovery, inflight: 110 },
      switch: { buffer: { totalBytes: BUFFER_BYTES }, ...(name === 'PFC' && { pfc: { priorities: [0] } }) },
      flows: [flowsOf({ from: `h0..h${senders - 1}`, to: `h${senders}`, message: MESSAGE_BYTES })],
    }),
    watch: (run: ScenarioRun) => watch(run, senders),
  }));
}

/** Completed payload, payload that the link to the receiver carries, and its queue. */
function watch(run: ScenarioRun, senders: number): () => readonly number[] {
  const node = run.network.switches.get('s0')!;
  const port = node.ports.indexOf(`h${senders}`);
  const cable = run.network.cables.get(`s0>h${senders}`)!;
  let [doneBytes, linkBytes, atNs] = [0, 0, 0];
  return () => {
    const { nowNs } = run.events;
    const done = run.flows.reduce((sum, flow) => sum + flow.doneBytes, 0);
    const link = cable.bytes + cable.frames * cable.frameOverheadBytes;
    const bps = (bytes: number) => (bytes * 8e9) / (nowNs - atNs);
    const rates = [bps(done - doneBytes), bps(link - linkBytes)];
    [doneBytes, linkBytes, atNs] = [done, link, nowNs];
    return [...rates, node.queuedBytes(port)];
  };
}

function explain(values: Values, outcomes: readonly Outcome[]): Explanation {
  const lossy = outcomes.find(({ name }) => name === 'no PFC');
  const paused = outcomes.find(({ name }) => name === 'PFC');
  const shareOf = ({ means: [goodputBps, linkBps] }: Outcome) => (linkBps === 0 ? 1 : goodputBps / linkBps);
  const numbers = {
    senders: values['senders'],
    scheme: values['recovery'],
    share: (100 * (lossy === undefined ? 1 : shareOf(lossy))).toFixed(0),
    lost: String(lossy?.result.summary.droppedPackets ?? 0),
    pauses: String(paused?.result.summary.pauseFrames ?? 0),
  };
  const usefulShare = Math.min(1, ...outcomes.map(shareOf));
  return (lossy?.result.summary.droppedPackets ?? 0) > 0
    ? { usefulShare: Math.min(usefulShare, FAIR_SHARE_MAX), title: 'incast.lossy', text: 'incast.lossy.text', numbers }
    : { usefulShare, title: 'incast.paused', text: 'incast.paused.text', numbers };
}
