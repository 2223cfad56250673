/** MELO: one pool of bitmaps for all connections of a NIC. With enough of them it is selective repeat, with none it goes back. */

import { describe, expect, it } from 'vitest';
import { runScenario } from '../../packages/lab/src/sim/scenario/run-scenario.js';
import { parseScenario } from '../../packages/lab/src/sim/scenario/schema.js';
import { NicContext } from '../../src/retransmit/nic-context.js';
import { AHEAD_BUFFERED, AHEAD_NAK } from '../../src/retransmit/recovery.js';
import { createReceiver, recoverySettings } from '../../src/retransmit/recovery-schemes.js';

const PACKET = new Uint8Array(32);

/** Receivers of one NIC. */
function receiversOf(nic: NicContext, count: number, poolBitmaps: number) {
  return Array.from({ length: count }, () => {
    const receiver = createReceiver(recoverySettings({ name: 'melo', poolBitmaps }), nic);
    receiver.reset(64);
    return { receiver, ahead: (psn: number) => receiver.onAhead(psn, psn, PACKET, 0, PACKET.length) };
  });
}

describe('the pool of bitmaps', () => {
  it('serves as many connections with a gap as it has bitmaps; another gets one when a gap is closed', () => {
    const [first, second] = receiversOf(new NicContext(), 2, 1);
    expect([first.ahead(1), first.ahead(2), second.ahead(1)]).toEqual([AHEAD_BUFFERED, AHEAD_BUFFERED, AHEAD_NAK]);
    first.receiver.takeBuffered(1);
    expect(second.ahead(1)).toBe(AHEAD_NAK);
    first.receiver.takeBuffered(2);
    expect(second.ahead(1)).toBe(AHEAD_BUFFERED);
    expect(first.ahead(4)).toBe(AHEAD_NAK);
  });

  it('gets the bitmap of a connection back that ends', () => {
    const [first, second] = receiversOf(new NicContext(), 2, 1);
    first.ahead(1);
    first.receiver.reset(0);
    first.receiver.reset(0); // Once only.
    expect([second.ahead(1), first.ahead(1)]).toEqual([AHEAD_BUFFERED, AHEAD_NAK]);
  });

  it('gets the bitmap of a gap back behind which nothing could be kept', () => {
    const [first, second] = receiversOf(new NicContext(), 2, 1);
    first.receiver.onAhead(100, 100, PACKET, 0, PACKET.length); // Beyond the window.
    expect(second.ahead(1)).toBe(AHEAD_BUFFERED);
  });

  it('is the own one of each NIC', () => {
    const [one] = receiversOf(new NicContext(), 1, 1);
    const [other] = receiversOf(new NicContext(), 1, 1);
    expect([one.ahead(1), other.ahead(1)]).toEqual([AHEAD_BUFFERED, AHEAD_BUFFERED]);
  });
});

const LOSS = 0.01;

/** `flows` flows over a link of 40 Gb/s that loses one packet in 100. */
async function lossy(recovery: string | object, flows = 1) {
  const { summary, traceHash } = await runScenario(
    parseScenario({
      name: 'lossy',
      duration: '4ms',
      topology: { kind: 'pair', rate: '40Gbps', delay: '2us' },
      nic: { recovery, timeout: 8, inflight: 220 },
      faults: `h0>h1:random=${LOSS}`,
      flows: [{ kind: 'flows', from: 'h0', to: 'h1', message: '256KiB', outstanding: 4, each: flows }],
    }),
    { realNowNs: () => 0 },
  );
  const { efficiency, retransmittedPackets } = summary;
  return { traceHash, efficiency, retransmittedPackets };
}

describe('a flow that loses one packet in 100', () => {
  it('is that of selective repeat, packet by packet, where there are bitmaps', async () => {
    const [melo, selective, none] = await Promise.all([
      lossy('melo'),
      lossy('selective-repeat'),
      lossy({ name: 'melo', poolBitmaps: 0 }),
    ]);
    expect(melo.traceHash).toBe(selective.traceHash);
    expect(melo.efficiency).toBeCloseTo(1 - LOSS, 2);
    expect(none.traceHash).not.toBe(selective.traceHash);
  });

  it('loses what go-back-N does where there are none', async () => {
    const [none, goBack] = await Promise.all([lossy({ name: 'melo', poolBitmaps: 0 }), lossy('go-back-n')]);
    expect(none.efficiency).toBeGreaterThan(0.9 * goBack.efficiency);
    expect(none.efficiency).toBeLessThan(0.8 * (1 - LOSS));
  });
});

it('eight flows send less again the more bitmaps there are, and no less with more bitmaps than flows', async () => {
  const [none, one, eight, many] = await Promise.all(
    [0, 1, 8, 512].map((poolBitmaps) => lossy({ name: 'melo', poolBitmaps }, 8)),
  );
  expect(one.retransmittedPackets).toBeLessThan(0.9 * none.retransmittedPackets);
  expect(eight.retransmittedPackets).toBeLessThan(0.6 * one.retransmittedPackets);
  expect(many.traceHash).toBe(eight.traceHash);
});
