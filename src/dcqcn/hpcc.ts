/**
 * HPCC (Li et al., SIGCOMM 2019): switches report the load of each link, and the window follows the most loaded one.
 * For each acknowledgement and hop (§3.2, algorithm 1)
 *
 *     txRate = (txBytes - txBytes') / (ts - ts')
 *     u = min(qlen, qlen') / (B T) + txRate / B
 *
 * and with the largest u of all hops and tau = ts - ts' there, at most T:   U = (1 - tau/T) U + (tau/T) u.
 *
 * It needs switches that write records (packages/lab/docs/switch.md) and a peer that echoes them; without records it
 * stays at its first window.
 */

import { INT_DATA_HOPS } from '../packet/int-trailer.js';
import { HopHistory } from './hop-history.js';
import { type Acknowledgement, defineRateControl } from './rate-control.js';
import { UTILIZATION_WINDOW_TABLE, UtilizationWindow } from './utilization-window.js';

export class Hpcc extends UtilizationWindow {
  override readonly intKind: number = INT_DATA_HOPS;
  readonly #history = new HopHistory();
  #utilization = 1;

  override onAck({ echo, rttNs }: Readonly<Acknowledgement>, now: number): void {
    if (echo === undefined) return;
    const hops = this.#history.comparable(echo);
    let fullest = Number.NEGATIVE_INFINITY;
    let elapsedNs = 0;
    for (let i = 0; i < hops; i++) {
      const hop = this.#history.since(echo, i);
      if (hop === undefined) continue;
      const queueBytes = Math.min(hop.queueBytes, hop.queueBeforeBytes);
      const u = (queueBytes * 8e9) / (hop.rateBps * this.baseRttNs) + hop.sentBps / hop.rateBps;
      if (u <= fullest) continue;
      fullest = u;
      elapsedNs = hop.elapsedNs;
    }
    this.#history.keep(echo);
    if (fullest < 0) return;
    const weight = Math.min(1, elapsedNs / this.baseRttNs);
    this.#utilization = (1 - weight) * this.#utilization + weight * fullest;
    this.react(this.#utilization, rttNs, now);
  }
}

export const hpcc = defineRateControl({
  name: 'hpcc',
  summary: 'a window by the load that switches report, hop by hop',
  parameters: UTILIZATION_WINDOW_TABLE,
  create: (parameters) => new Hpcc(parameters),
});
