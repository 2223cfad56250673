/**
 * PowerTCP (Addanki et al., NSDI 2022, algorithm 1): the window follows the power of the most loaded hop, which is
 * current times voltage. With the queue q, its change q' and the rate of the port mu, from the records of switches,
 *
 *     power = (q' + mu) (q + B T) / (B^2 T)
 *
 * It needs switches that write records (packages/lab/docs/switch.md) and a peer that echoes them; without records it
 * stays at its first window.
 */

import type { ParametersOf, ParameterTable } from '../core/parameters.js';
import { INT_DATA_HOPS } from '../packet/int-trailer.js';
import { HopHistory } from './hop-history.js';
import { POWER_WINDOW_TABLE, PowerWindow } from './power-window.js';
import { type Acknowledgement, defineRateControl } from './rate-control.js';

const POWERTCP_TABLE = {
  ...POWER_WINDOW_TABLE,
  /** gamma: the weight of the newest window. */
  gain: { default: 0.9, min: 0.01, max: 1 },
} as const satisfies ParameterTable;

export class PowerTcp extends PowerWindow {
  override readonly intKind: number = INT_DATA_HOPS;
  readonly #history = new HopHistory();

  constructor(parameters: ParametersOf<typeof POWERTCP_TABLE>) {
    super(parameters, parameters.gain);
  }

  override onAck({ echo, rttNs }: Readonly<Acknowledgement>, now: number): void {
    if (echo === undefined) return;
    const hops = this.#history.comparable(echo);
    let strongest = Number.NEGATIVE_INFINITY;
    let elapsedNs = 0;
    for (let i = 0; i < hops; i++) {
      const hop = this.#history.since(echo, i);
      if (hop === undefined) continue;
      const growthBps = ((hop.queueBytes - hop.queueBeforeBytes) * 8e9) / hop.elapsedNs;
      const current = (growthBps + hop.sentBps) / hop.rateBps;
      const voltage = (hop.queueBytes * 8e9) / (hop.rateBps * this.baseRttNs) + 1;
      if (current * voltage <= strongest) continue;
      strongest = current * voltage;
      elapsedNs = hop.elapsedNs;
    }
    this.#history.keep(echo);
    if (strongest === Number.NEGATIVE_INFINITY) return;
    this.smooth(strongest, elapsedNs);
    this.move();
    if (this.isNewRoundTrip(rttNs, now)) this.rememberWindow();
  }
}

export const powertcp = defineRateControl({
  name: 'powertcp',
  summary: 'a window by the power (queue and its change) that switches report',
  parameters: POWERTCP_TABLE,
  create: (parameters) => new PowerTcp(parameters),
});
