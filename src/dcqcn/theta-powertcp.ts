/**
 * theta-PowerTCP (Addanki et al., NSDI 2022, algorithm 2): PowerTCP by round-trip times alone, for switches without
 * telemetry and any peer. With the round trip theta and its change theta' per time,
 *
 *     power = (theta' + 1) theta / T
 *
 * The window moves once per round trip.
 */

import type { ParametersOf, ParameterTable } from '../core/parameters.js';
import { POWER_WINDOW_TABLE, PowerWindow } from './power-window.js';
import { type Acknowledgement, defineRateControl } from './rate-control.js';

const THETA_POWERTCP_TABLE = {
  ...POWER_WINDOW_TABLE,
  /** gamma: the weight of the newest window. */
  gain: { default: 0.7, min: 0.01, max: 1 },
} as const satisfies ParameterTable;

export class ThetaPowerTcp extends PowerWindow {
  override readonly rttSampleBytes = 1;
  #rttNs = Number.NaN;
  #sampledNs = 0;

  constructor(parameters: ParametersOf<typeof THETA_POWERTCP_TABLE>) {
    super(parameters, parameters.gain);
  }

  override onAck({ rttNs }: Readonly<Acknowledgement>, now: number): void {
    if (Number.isNaN(rttNs) || now === this.#sampledNs) return;
    const elapsedNs = now - this.#sampledNs;
    const isFirst = Number.isNaN(this.#rttNs);
    const change = isFirst ? 0 : (rttNs - this.#rttNs) / elapsedNs;
    this.#rttNs = rttNs;
    this.#sampledNs = now;
    this.smooth(((change + 1) * rttNs) / this.baseRttNs, elapsedNs);
    if (!this.isNewRoundTrip(rttNs, now)) return;
    this.move();
    this.rememberWindow();
  }
}

export const thetaPowertcp = defineRateControl({
  name: 'theta-powertcp',
  summary: 'a window by the power that round-trip times show',
  parameters: THETA_POWERTCP_TABLE,
  create: (parameters) => new ThetaPowerTcp(parameters),
});
