/** A pause storm: one broken host stops traffic that is not for it, until a watchdog ignores its pauses. */

import type { Scenario, ScenarioRun } from '@rocev2/lab/internal/page';
import { flowsOf, LINK_BPS, NIC, scenarioOf } from './scenario-of.js';
import type { Explanation, Outcome, SimulatedScene, Values, Variant } from './scene.js';
import { nsOf } from './units.js';

const DURATION_NS = 12e6;
const STORM_NS = 2e6;
/** How often the watchdog looks. */
const POLL_NS = 100_000;
/** Short, so that completions are dense in time. */
const MESSAGE_BYTES = 8192;
const [BROKEN, OTHER] = ['h4', 'h5'] as const;
const VARIANTS = ['no storm', 'storm', 'storm, watchdog'] as const;
/** A victim with less of its link is stopped. */
const STOPPED_SHARE = 0.5;

export const STORM: SimulatedScene = {
  kind: 'simulated',
  name: 'storm',
  parameters: [
    { name: 'runs', kind: 'set', values: ['none', 'storm', 'watchdog'], initial: 'none,storm,watchdog' },
    { name: 'detect', kind: 'slider', values: ['0.5 ms', '1 ms', '2 ms', '4 ms'], initial: '1 ms' },
  ],
  series: [
    { label: 'storm.other', unit: 'rate', color: '--hue0' },
    { label: 'storm.broken', unit: 'rate', color: '--hue1' },
  ],
  barMax: LINK_BPS,
  variants,
  explain,
};

function variants(values: Values, seed: number): readonly Variant[] {
  const chosen = values['runs'].split(',');
  const names = VARIANTS.filter((_, i) => chosen.includes(STORM.parameters[0].values[i]));
  return names.map((name) => ({
    name,
    scenario: scenarioOf({
      name: name.replaceAll(/\W+/g, '-'),
      seed,
      duration: DURATION_NS,
      topology: { kind: 'dumbbell', hosts: 8, rate: LINK_BPS, delay: 1000 },
      nic: { ...NIC, timeout: 14 },
      switch: {
        pfc: { priorities: [0], ...(name === 'storm, watchdog' && { watchdog: watchdogOf(values) }) },
        buffer: { totalBytes: 4_194_304 },
      },
      flows: [
        flowsOf({ from: 'h0', to: BROKEN, message: MESSAGE_BYTES }),
        flowsOf({ from: 'h1..h2', to: OTHER, message: MESSAGE_BYTES }),
      ],
      ...(name !== 'no storm' && {
        happenings: [{ do: 'storm', at: STORM_NS, host: BROKEN, priority: 0 }] satisfies Scenario['happenings'],
      }),
    }),
    watch,
  }));
}

function watchdogOf(values: Values) {
  const detectNs = nsOf(values['detect']);
  return { detectNs, restoreNs: detectNs, pollNs: POLL_NS };
}

/** Payload of completed messages, of the flows to the other host and of those to the broken one. */
function watch(run: ScenarioRun): () => readonly number[] {
  let [before, atNs] = [[0, 0], 0];
  return () => {
    const { nowNs } = run.events;
    const done = [OTHER, BROKEN].map((host) =>
      run.flows.reduce((sum, { plan, doneBytes }) => sum + (plan.to === host ? doneBytes : 0), 0),
    );
    const rates = done.map((bytes, i) => ((bytes - before[i]) * 8e9) / (nowNs - atNs));
    [before, atNs] = [done, nowNs];
    return rates;
  };
}

function explain(values: Values, outcomes: readonly Outcome[]): Explanation {
  const shares = outcomes.map(({ means: [otherBps] }) => otherBps / LINK_BPS);
  const usefulShare = Math.min(1, ...shares);
  const { pauseFrames } = outcomes[shares.indexOf(Math.min(...shares))].result.summary;
  const numbers = { share: (usefulShare * 100).toFixed(0), pauses: String(pauseFrames), detect: values['detect'] };
  return usefulShare < STOPPED_SHARE
    ? { usefulShare, title: 'storm.stopped', text: 'storm.stopped.text', numbers }
    : { usefulShare, title: 'storm.free', text: 'storm.free.text', numbers };
}
