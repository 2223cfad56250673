/**
 * DCTCP as a rate control (Alizadeh et al., "Data Center TCP", SIGCOMM 2010, §3.1; as in the simulator of HPCC): the
 * rate falls with the share of marked packets. Once per round trip, with the share F of packets that switches have
 * marked in it,
 *
 *     alpha = (1 - g) alpha + g F
 *     F > 0:   R = R (1 - alpha/2)         else:   R = R + R_AI
 *
 * Marks come back with acknowledgements, exactly counted, so it needs a peer that echoes. Switches should mark by a
 * step, kmin = kmax: at C RTT / 7.
 */

import { RoceError } from '../core/errors.js';
import { LIMITS, type ParametersOf, type ParameterTable } from '../core/parameters.js';
import { INT_DATA_TIMES } from '../packet/int-trailer.js';
import { type Acknowledgement, defineRateControl, RateControl } from './rate-control.js';

const DCTCP_TABLE = {
  /** Line rate: the ceiling, and where a flow starts. */
  linkRateBps: { default: 100e9, ...LIMITS.rateBps },
  minimumRateBps: { default: 100e6, ...LIMITS.rateBps },
  /** g: weight of the newest round trip in alpha. */
  gain: { default: 1 / 16, min: 1e-4, max: 1 },
  /** R_AI: the step up for a round trip without marks. HPCC's simulator; a packet of 1 KiB in 8 us. */
  additiveIncreaseBps: { default: 1e9, ...LIMITS.rateBps },
} as const satisfies ParameterTable;

/** Invariant: minimumRateBps <= rate <= linkRateBps. */
export class Dctcp extends RateControl {
  override readonly usesEcn = true;
  override readonly intKind: number = INT_DATA_TIMES;
  readonly #p: ParametersOf<typeof DCTCP_TABLE>;
  #rate: number;
  /** RFC 8257 §3.3: alpha of a new flow is 1, so that it reacts fully to the first mark. */
  #alpha = 1;
  #received = 0;
  #marked = 0;
  #roundTripBeganNs = Number.NEGATIVE_INFINITY;

  constructor(parameters: ParametersOf<typeof DCTCP_TABLE>) {
    super();
    if (parameters.minimumRateBps > parameters.linkRateBps) {
      throw new RoceError('ERR_ROCE_CONFLICT', 'minimumRateBps is above linkRateBps');
    }
    this.#p = parameters;
    this.#rate = parameters.linkRateBps;
  }

  override rateBps(_now: number): number {
    return this.#rate;
  }

  override alpha(_now: number): number {
    return this.#alpha;
  }

  override onAck({ rttNs, receivedPackets, markedPackets }: Readonly<Acknowledgement>, now: number): void {
    this.#received += receivedPackets;
    this.#marked += markedPackets;
    if (this.#received === 0 || !(now - rttNs >= this.#roundTripBeganNs)) return;
    const { gain, additiveIncreaseBps, minimumRateBps, linkRateBps } = this.#p;
    this.#alpha = (1 - gain) * this.#alpha + (gain * this.#marked) / this.#received;
    const rate = this.#marked > 0 ? this.#rate * (1 - this.#alpha / 2) : this.#rate + additiveIncreaseBps;
    this.#rate = Math.min(linkRateBps, Math.max(minimumRateBps, rate));
    this.#received = 0;
    this.#marked = 0;
    this.#roundTripBeganNs = now;
  }
}

export const dctcp = defineRateControl({
  name: 'dctcp',
  summary: 'reduces the rate by the share of packets that switches marked',
  parameters: DCTCP_TABLE,
  create: (parameters) => new Dctcp(parameters),
});
