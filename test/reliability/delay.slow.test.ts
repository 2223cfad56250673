/**
 * Delay and jitter up to 750 ms one way, so that packets overtake each other by hundreds: with a timeout that covers the round trip everything
 * arrives; one that does not is told as what it is.
 */

import { describe, expect, it } from 'vitest';
import { randomUnit, SeededRandom } from '../../src/core/random.js';
import type { QpAttr } from '../../src/verbs/qp-attributes.js';
import { createPair, type Pair } from '../support/pair.js';
import { OPS, type Op, transfer } from './transfer.js';
import { lay } from './unruly-wire.js';

const MS = 1e6;
const RATE_BPS = 1e9;
/** 2.1 s, more than there and back; 67 ms. */
const LONG_TIMEOUT = 19;
const SHORT_TIMEOUT = 14;
type Scheme = 'go-back-n' | 'selective-repeat';
const MESSAGES = 8;
const MESSAGE_BYTES = 64 << 10;

async function far(
  delayNs: number,
  jitterNs: number,
  timeout: number,
  recovery: Scheme,
  more: QpAttr = {},
): Promise<Pair> {
  const pair = await createPair({ attrA: { timeout, ...more }, attrB: { timeout, ...more }, recovery });
  const { a, b, events } = pair;
  const random = new SeededRandom(3).stream('jitter');
  const after = () => delayNs + randomUnit(random) * jitterNs;
  lay(a.host, events, RATE_BPS, () => [{ to: b.host, afterNs: after() }]);
  lay(b.host, events, RATE_BPS, () => [{ to: a.host, afterNs: after() }]);
  return pair;
}

const send = (pair: Pair, op: Op) => transfer(pair, { op, messages: MESSAGES, messageBytes: MESSAGE_BYTES });

describe.each([
  ['750 ms each way', 750 * MS, 0],
  ['1 to 100 ms each way, each packet its own', 1 * MS, 99 * MS],
  ['0 to 750 ms each way, each packet its own', 0, 750 * MS],
] as const)('%s', (name, delayNs, jitterNs) => {
  const cases = (['go-back-n', 'selective-repeat'] as const).flatMap((scheme) =>
    OPS.map((op) => [scheme, op] as const),
  );
  it.each(cases)('%s brings every byte of %s, once and in order', async (scheme, op) => {
    const pair = await far(delayNs, jitterNs, LONG_TIMEOUT, scheme);
    const bps = send(pair, op);
    const { tx_retransmitted, local_ack_timeout_err } = pair.a.device.counters();
    console.log(
      `${name}, ${scheme}, ${op}: ${(bps / 1e3).toFixed(0)} kb/s, ${tx_retransmitted} sent again, ${local_ack_timeout_err} timeouts`,
    );
    if (jitterNs === 0)
      expect({ tx_retransmitted, local_ack_timeout_err }).toEqual({ tx_retransmitted: 0, local_ack_timeout_err: 0 });
  });
});

describe('750 ms each way, and a timeout of 67 ms, as connections have it by default', () => {
  const one = async (attr: { totalTimeout?: number }) => {
    const pair = await far(750 * MS, 0, SHORT_TIMEOUT, 'go-back-n', attr);
    const { a, b } = pair;
    a.qp.postSend({ opcode: 'RDMA_WRITE', sges: [a.mr.sge(0, 64)], remoteAddr: b.mr.addr, rkey: b.mr.rkey });
    return pair.completions(a.cq, 1);
  };

  it('with the total of 17 s that our own connections have: everything arrives', async () => {
    expect(await one({ totalTimeout: 22 })).toMatchObject([{ statusName: 'SUCCESS' }]);
  });

  it('twin: as the standard counts, it ends in RETRY_EXC_ERR and not in silence', async () => {
    expect(await one({})).toMatchObject([{ statusName: 'RETRY_EXC_ERR' }]);
  });
});
