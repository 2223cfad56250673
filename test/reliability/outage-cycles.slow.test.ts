/**
 * The path vanishes for 2 s and 5 s, again and again: two seconds after it is back, at least 90 % of the earlier rate is. And more than a tenth of the
 * packets are lost, in both directions: everything arrives. In virtual time, with the total timeout of our own connections.
 */

import { describe, expect, it } from 'vitest';
import { randomUnit, SeededRandom } from '../../src/core/random.js';
import { createPair, type Pair } from '../support/pair.js';
import { OPS, transfer } from './transfer.js';
import { lay } from './unruly-wire.js';

const SECOND = 1e9;
const RATE_BPS = 4e6;
const FLIGHT_NS = 100_000;
const MESSAGE_BYTES = 4096;
const STEP_NS = 20e6;
/** 17.2 s (docs/recovery.md). */
const ATTR = { timeout: 15, totalTimeout: 22, inflightPackets: 64 };
const SCHEMES = ['go-back-n', 'selective-repeat', 'rack'] as const;
type Scheme = (typeof SCHEMES)[number];

async function pairOver(recovery: Scheme, isLost: () => boolean): Promise<Pair> {
  const pair = await createPair({ recovery, attrA: ATTR, attrB: ATTR });
  const { a, b, events } = pair;
  for (const [from, to] of [
    [a, b],
    [b, a],
  ])
    lay(from.host, events, RATE_BPS, () => (isLost() ? [] : [{ to: to.host, afterNs: FLIGHT_NS }]));
  return pair;
}

describe.each(SCHEMES)('%s', (scheme) => {
  it('has 90 % of its rate 2 s after an outage of 2 or 5 s', async () => {
    const wire = { isDark: false };
    const pair = await pairOver(scheme, () => wire.isDark);
    const { a, b, events } = pair;
    const post = () =>
      a.qp.postSend({
        opcode: 'RDMA_WRITE',
        sges: [a.mr.sge(0, MESSAGE_BYTES)],
        remoteAddr: b.mr.addr,
        rkey: b.mr.rkey,
      });
    for (let k = 0; k < 8; k++) post();
    /** Messages that complete within so many seconds. */
    const during = (seconds: number): number => {
      let done = 0;
      for (const endNs = events.nowNs + seconds * SECOND; events.nowNs < endNs; ) {
        pair.run({ untilNs: events.nowNs + STEP_NS });
        for (const { statusName } of a.cq.poll(64)) {
          expect(statusName).toBe('SUCCESS');
          done++;
          post();
        }
      }
      return done;
    };
    during(0.5);
    const normal = during(1);
    expect(normal * MESSAGE_BYTES * 8).toBeGreaterThan(0.7 * RATE_BPS);
    for (const outageSeconds of [2, 5, 2, 5]) {
      wire.isDark = true;
      expect(during(outageSeconds)).toBeLessThan(10);
      wire.isDark = false;
      during(2);
      expect(during(1), `after ${outageSeconds} s`).toBeGreaterThanOrEqual(0.9 * normal);
    }
  });

  it.each(OPS)('brings every byte of %s, once and in order, at losses of 0.15 and 0.3 both ways', async (op) => {
    for (const loss of [0.15, 0.3]) {
      const random = new SeededRandom(7).stream(`loss ${loss}`);
      const pair = await pairOver(scheme, () => randomUnit(random) < loss);
      expect(transfer(pair, { op, messages: 12, messageBytes: 4096, eventsMax: 2_000_000 })).toBeGreaterThan(0);
    }
  });
});
