/** A receiver that never posts a receive, and a sender that may try for ever: what the retries cost the wire, and that others are served. */

import { describe, expect, it } from 'vitest';
import { createPair } from '../support/pair.js';

const SECOND = 1e9;
/** Code 12: 0.64 ms, the default of every connection of ours. */
const RNR_TIMER = 12;
const RNR_TIMER_NS = 640_000;

describe.each([
  ['a message of 64 bytes', 64, 1],
  ['a message of 256 packets', 256 << 10, 1],
  ['64 messages of 64 bytes', 64, 64],
] as const)('%s that nobody wants', (name, bytes, messages) => {
  it('costs a bounded number of packets a second', async () => {
    const sent = { 'a>b': 0, 'b>a': 0 };
    const pair = await createPair({
      attrB: { minRnrTimer: RNR_TIMER },
      onPacket: (direction) => {
        sent[direction]++;
      },
    });
    const { a } = pair;
    for (let k = 0; k < messages; k++) a.qp.postSend({ opcode: 'SEND', sges: [a.mr.sge(0, bytes)] });
    pair.run({ untilNs: SECOND, eventsMax: 20_000_000 });
    const tries = a.device.counters().rnr_nak_received;
    console.log(`${name}: ${tries} tries, ${sent['a>b']} packets of the sender, ${sent['b>a']} answers a second`);
    expect(a.cq.poll()).toEqual([]); // It waits, as rnrRetry 7 says.
    expect(tries).toBeGreaterThan(100);
    expect(tries).toBeLessThanOrEqual(SECOND / RNR_TIMER_NS);
    expect(sent['b>a']).toBe(tries); // One answer a try.
  });
});
