/** The cost of recovery: the share of useful packets over the loss, simulated and in closed form. */

import type { ScenarioRun } from '@rocev2/lab/internal/page';
import { recoverySchemes } from 'rocev2/internal/retransmit';
import { flowsOf, LINK_BPS, NIC, scenarioOf } from './scenario-of.js';
import {
  type Curve,
  chosenOf,
  type Explanation,
  FAIR_SHARE_MAX,
  type Outcome,
  type SimulatedScene,
  type Values,
  type Variant,
} from './scene.js';
import { nsOf } from './units.js';

const SCHEMES = ['go-back-n', 'selective-repeat', 'irn', 'rack'] as const;
const LOSSES = ['0.0001', '0.001', '0.01'] as const;
/** Decimal logarithms of losses, for the curves. */
const EXPONENTS = Array.from({ length: 41 }, (_, i) => -4.5 + i / 13.3);
const DURATION_NS = 5e6;
const MTU = 1024;
const MESSAGE_BYTES = 2 ** 20;
/** On the wire: Ethernet with preamble and gap, IPv4, UDP, BTH and ICRC. */
const OVERHEAD_BYTES = 82;
const PACKET_NS = ((MTU + OVERHEAD_BYTES) * 8e9) / LINK_BPS;
const GOOD_SHARE = 0.9;
export const RECOVERY: SimulatedScene = {
  kind: 'simulated',
  name: 'recovery',
  parameters: [
    { name: 'schemes', kind: 'set', values: SCHEMES, initial: 'go-back-n,selective-repeat' },
    { name: 'delay', kind: 'slider', values: ['0.5 us', '2 us', '10 us', '50 us'], initial: '2 us' },
  ],
  series: [
    { label: 'recovery.simulated', unit: 'share', color: '--hue0' },
    { label: 'recovery.closedForm', unit: 'share', color: '--hue7' },
  ],
  barMax: 1,
  variants,
  curve,
  explain,
};

function variants(values: Values, seed: number): readonly Variant[] {
  const delay = nsOf(values['delay']);
  return chosenOf(SCHEMES, values['schemes']).flatMap((scheme) =>
    LOSSES.map((loss) => ({
      name: nameOf(scheme, loss),
      scenario: scenarioOf({
        name: `recovery-${scheme}`,
        seed,
        duration: DURATION_NS,
        topology: { kind: 'pair', rate: LINK_BPS, delay },
        nic: { ...NIC, recovery: scheme },
        faults: `h0>h1:random=${loss}`,
        flows: [flowsOf({ from: 'h0', to: 'h1', message: MESSAGE_BYTES, outstanding: 16 })],
      }),
      watch: (run: ScenarioRun) => watch(run, closedForm(scheme, Number(loss), delay)),
    })),
  );
}

function curve(values: Values): Curve {
  const delay = nsOf(values['delay']);
  const schemes = chosenOf(SCHEMES, values['schemes']);
  return {
    label: 'recovery.curve',
    xLabel: 'recovery.loss',
    formatX: (exponent) => `${Number((100 * 10 ** exponent).toPrecision(2))} %`,
    formatY: (share) => `${(share * 100).toFixed(1)} %`,
    x: EXPONENTS,
    lines: schemes.map((name) => ({ name, y: EXPONENTS.map((exponent) => closedForm(name, 10 ** exponent, delay)) })),
    points: (outcomes) =>
      schemes.flatMap((scheme, line) =>
        LOSSES.flatMap((loss) => {
          const outcome = outcomes.find(({ name }) => name === nameOf(scheme, loss));
          return outcome === undefined ? [] : [{ line, x: Math.log10(Number(loss)), y: outcome.means[0] }];
        }),
      ),
  };
}

function nameOf(scheme: string, loss: string): string {
  return `${scheme}, ${Number(loss) * 100} %`;
}

/** Packets that leave after a lost one, until the NAK for it is back. */
function pipelinePackets(delayNs: number): number {
  return Math.ceil((4 * delayNs + 2 * PACKET_NS) / PACKET_NS);
}

function closedForm(scheme: (typeof SCHEMES)[number], probability: number, delayNs: number): number {
  const { efficiency } = recoverySchemes.get(scheme);
  return efficiency!({ kind: 'random', probability }, MESSAGE_BYTES / MTU, pipelinePackets(delayNs))!;
}

function watch({ flows: [flow] }: ScenarioRun, expected: number): () => readonly number[] {
  let [packets, repeated] = [0, 0];
  return () => {
    const sent = flow.packets - packets;
    const share = sent === 0 ? 1 : 1 - (flow.retransmittedPackets - repeated) / sent;
    [packets, repeated] = [flow.packets, flow.retransmittedPackets];
    return [share, expected];
  };
}

function explain(values: Values, outcomes: readonly Outcome[]): Explanation {
  const shares = outcomes.map(({ means: [share] }) => share);
  const usefulShare = Math.min(...shares);
  const numbers = {
    name: outcomes[shares.indexOf(usefulShare)].name,
    share: (usefulShare * 100).toFixed(0),
    pipeline: String(pipelinePackets(nsOf(values['delay']))),
  };
  return usefulShare < GOOD_SHARE
    ? {
        usefulShare: Math.min(usefulShare, FAIR_SHARE_MAX),
        title: 'recovery.costly',
        text: 'recovery.costly.text',
        numbers,
      }
    : { usefulShare, title: 'recovery.cheap', text: 'recovery.cheap.text', numbers };
}
