import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { connect, listen } from '../../../../src/cm/listen-connect.js';
import { SeededRandom } from '../../../../src/core/random.js';
import { parseUdpEndpoint } from '../../../../src/dgram-ext/udp-endpoint.js';
import { type DeviceOptions, openDevice } from '../../../../src/verbs/open-device.js';
import { eventually } from '../../../../test/support/eventually.js';
import { type LiveSwitch, type LiveSwitchOptions, openLiveSwitch } from '../../src/live/live-switch.js';

/** TCP does not go through the switch. */
const allowForeignGid = true;

const RATE = 200e6;
const BYTES = 4 << 20;

type HostOptions = Pick<NonNullable<DeviceOptions['frame']>, 'dscpToPriority'>;

/** Writes 4 MiB from a to b over the switch; how long it took, and what was counted. */
async function transfer(options: Partial<LiveSwitchOptions>, rates: { a: number; b: number }, hosts: HostOptions = {}) {
  const wire = await openLiveSwitch({
    ports: ['a', 'b'].map((name) => ({ name, local: parseUdpEndpoint('127.52.1.1:0') })),
    random: new SeededRandom(1).stream('marking'),
    portConfig: { a: { rateBps: rates.a }, b: { rateBps: rates.b } },
    ...options,
  });
  try {
    return await transferOver(wire, rates, hosts);
  } finally {
    await wire.close();
  }
}

async function transferOver(wire: LiveSwitch, rates: { a: number; b: number }, hosts: HostOptions) {
  const [a, b] = await Promise.all(
    (['a', 'b'] as const).map((name, i) => {
      const { host, port } = wire.local(name);
      const frame = { local: '127.52.1.2:0', remote: `${host.text}:${port}`, rateBps: rates[name], ...hosts };
      return openDevice({ address: `198.18.52.${i + 1}`, frame });
    }),
  );
  const region = Buffer.alloc(BYTES);
  const listener = await listen(b, { host: '127.52.1.2', port: 0, region, allowForeignGid });
  const [peer, connection] = await Promise.all([
    listener.accept(),
    connect(a, { host: '127.52.1.2', port: listener.port, allowForeignGid }),
  ]);
  const data = Buffer.from(Uint8Array.from({ length: BYTES }, (_, i) => i * 7 + (i >> 8)));
  const beganMs = performance.now();
  await connection.write(data);
  const seconds = (performance.now() - beganMs) / 1000;
  expect(region.equals(data)).toBe(true);
  const { rx_prio0_pause: pauses, rx_prio3_pause: pausesOf3 } = a.counters();
  for (const end of [connection, peer, listener, a, b]) await end.close();
  // Packets that were sent again may still be queued.
  await eventually(() => bytesHeld(wire) === 0);
  return { seconds, pauses, pausesOf3, counters: wire.counters };
}

/** In the pools of the switch, if it has any. */
function bytesHeld(wire: LiveSwitch): number {
  const { pools } = wire.snapshot();
  return pools === undefined ? 0 : pools.shared.usedBytes + pools.headroom.usedBytes;
}

describe('links of a live switch', () => {
  it('are not faster than their rate', async () => {
    const { seconds } = await transfer({}, { a: 1e9, b: RATE });
    expect(seconds).toBeGreaterThan((BYTES * 8) / RATE - 0.02);
  });

  it('pause the sender before the buffer overflows, and lose nothing', async () => {
    const buffer = { totalBytes: 6 << 20, losslessAlpha: 1 / 16 };
    const { pauses, counters } = await transfer(
      { pfc: { priorities: [0] }, buffer, portDefaults: { headroomBytes: 2 << 20 } },
      { a: 1e9, b: RATE },
    );
    expect(counters['a'].tx_prio0_pause).toBeGreaterThan(0);
    expect(pauses).toBeGreaterThan(0);
    expect(counters['b'].tx_dropped_headroom).toBe(0);
  });

  it('pause the priority to which switch and hosts map the DSCP of the data, as in docs/switch.md', async () => {
    const page = readFileSync(new URL('../../docs/switch.md', import.meta.url), 'utf8');
    const { classification, pfc } = JSON.parse(/```json\n(.*?)```/s.exec(page)![1]);
    expect(page).toContain('1Gbps,0=3');
    expect([classification, pfc.priorities]).toEqual([{ dscpToPriority: { 0: 3 } }, [3]]);
    const buffer = { totalBytes: 6 << 20, losslessAlpha: 1 / 16 };
    const options = { classification, pfc: { priorities: [3] }, buffer, portDefaults: { headroomBytes: 2 << 20 } };
    const { pausesOf3, counters } = await transfer(options, { a: 1e9, b: RATE }, classification);
    expect(pausesOf3).toBeGreaterThan(0);
    expect(counters['b'].tx_dropped_headroom).toBe(0);
  });

  it('lose packets of a buffer that neither pauses nor holds what is in flight, and the NIC sends them again', async () => {
    const { counters } = await transfer({ buffer: { totalBytes: 200_000, lossyAlpha: 1 } }, { a: 1e9, b: RATE });
    expect(counters['b'].tx_dropped_lossy_threshold).toBeGreaterThan(0);
  });
});
