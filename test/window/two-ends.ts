/** The two ends of a pool protocol on a simulated link, with promises run between the events of virtual time. */

import { virtualClock } from '../../packages/lab/src/sim/virtual-clock.js';
import type { Clock } from '../../src/core/clock.js';
import { WindowLink, windowQueueDepths } from '../../src/window/window-link.js';
import { createPair, type Pair, type PairOptions, type Player } from '../support/pair.js';
import { until } from '../support/virtual-time.js';

export class TwoEnds {
  readonly pair: Pair;
  readonly clock: Clock;
  readonly server: WindowLink;
  readonly client: WindowLink;

  private constructor(pair: Pair, clock: Clock, server: WindowLink, client: WindowLink) {
    this.pair = pair;
    this.clock = clock;
    this.server = server;
    this.client = client;
  }

  /** `a` is the client, `b` the server. */
  static async create(blocksMax: number, options: PairOptions = {}): Promise<TwoEnds> {
    const pair = await createPair({ memoryBytes: 1 << 20, ...options, qp: windowQueueDepths(blocksMax) });
    const clock = virtualClock(pair.events);
    const link = ({ pd, qp, cq: sendCq, recvCq }: Player) =>
      WindowLink.over({ pd, qp, sendCq, recvCq, clock }, blocksMax);
    return new TwoEnds(pair, clock, await link(pair.b), await link(pair.a));
  }

  /** Resolves after this much virtual time. */
  sleep(ns: number): Promise<void> {
    return new Promise((resolve) => this.pair.events.after(ns, resolve));
  }

  /** Runs virtual time, and promises between its events, until `outcome` has settled. */
  until<T>(outcome: Promise<T>): Promise<T> {
    return until(this.pair.events, outcome);
  }
}
