/** The schemes of docs/extending.md under the tests of all schemes, and in the simulator. */

import { afterAll, describe, expect, it } from 'vitest';
import { runScenario } from '../../packages/lab/src/sim/scenario/run-scenario.js';
import { parseScenario } from '../../packages/lab/src/sim/scenario/schema.js';
import { createRateControl, type RateControlOptions, rateControlSettings } from '../../src/dcqcn/rate-controls.js';
import type { RecoveryName, RecoveryOptions } from '../../src/retransmit/recovery-schemes.js';
import { describeRateControl } from '../contracts/rate-control-contract.js';
import { describeRecovery } from '../contracts/recovery-contract.js';
import { createPair } from '../support/pair.js';
import { PageFolder } from './page.js';

const folder = new PageFolder();
await folder.load('capped-repeat.mjs');
await folder.load('delay-window.mjs');
afterAll(() => folder.remove());

const UNLIMITED = Number.POSITIVE_INFINITY;
const recoveryOptions = (options: object) => options as RecoveryOptions;
const rateOptions = (options: object) => options as RateControlOptions;

describeRecovery('capped-repeat' as RecoveryName);
describeRateControl({
  options: rateOptions({ name: 'delay-window' }),
  minimumRateBps: UNLIMITED,
  maximumRateBps: UNLIMITED,
});

describe('capped-repeat', () => {
  /** A message from a to b; what was in flight at most, and when it had arrived. */
  async function run(recovery: RecoveryOptions, packets = 64, faults?: string) {
    let inFlight = 0;
    let inFlightMax = 0;
    const pair = await createPair({
      recovery,
      mtu: 256,
      delayNs: 10_000,
      ...(faults !== undefined && { faults }),
      onPacket: (direction) => {
        inFlight = direction === 'a>b' ? inFlight + 1 : 0;
        inFlightMax = Math.max(inFlightMax, inFlight);
      },
    });
    const { a, b } = pair;
    a.qp.postSend({
      opcode: 'RDMA_WRITE',
      sges: [a.mr.sge(0, packets * 256)],
      remoteAddr: b.mr.addr,
      rkey: b.mr.rkey,
    });
    expect(pair.completions(a.cq, 1)).toMatchObject([{ statusName: 'SUCCESS' }]);
    return { inFlightMax, nowNs: pair.events.nowNs, counters: a.device.counters() };
  }

  it('keeps no more packets in flight than its parameter says', async () => {
    const { inFlightMax } = await run(recoveryOptions({ name: 'capped-repeat', inFlightPackets: 8 }));
    expect(inFlightMax).toBeLessThanOrEqual(8);
    expect((await run('selective-repeat')).inFlightMax).toBeGreaterThan(8);
  });

  it.each([
    ['short with few packets in flight', 3, 200_000],
    ['long with many', 4, 900_000],
  ])('has a timeout that is %s', async (_, packets, timeoutNs) => {
    const timeouts = { lowTimeoutNs: 200_000, highTimeoutNs: 900_000 };
    // All packets are lost once: nobody hears of them before the timeout.
    const faults = Array.from({ length: packets }, (_unused, i) => `a>b:psn=${0x100 + i}:once`).join(';');
    const { nowNs, counters } = await run(recoveryOptions({ name: 'capped-repeat', ...timeouts }), packets, faults);
    expect(counters.local_ack_timeout_err).toBe(1);
    expect(nowNs).toBeGreaterThan(timeoutNs);
    expect(nowNs).toBeLessThan(timeoutNs + 150_000);
  });

  it('refuses parameters that contradict each other, and the queue pair stays as it was', async () => {
    const contradiction = { name: 'capped-repeat', lowTimeoutNs: 2000, highTimeoutNs: 1000 };
    await expect(createPair({ recovery: recoveryOptions(contradiction) })).rejects.toMatchObject({
      code: 'ERR_ROCE_CONFLICT',
    });
  });
});

describe('delay-window', () => {
  it('opens while round trips are short and closes, once a round trip, when they are long', () => {
    const control = createRateControl(rateControlSettings(rateOptions({ name: 'delay-window' })));
    const before = control.windowBytes(0);
    const acknowledge = (bytes: number, rttNs: number, now: number) =>
      control.onAck({ bytes, rttNs, marks: 0, receivedPackets: 0, markedPackets: 0, echo: undefined }, now);
    acknowledge(64_000, 10_000, 10_000);
    const opened = control.windowBytes(0);
    expect(opened).toBe(before + 4096);
    for (const now of [200_000, 210_000]) acknowledge(4096, 100_000, now);
    expect(control.windowBytes(0)).toBe(opened * (1 - 0.8 * 0.5));
  });

  it('keeps the queue of an incast short where nothing else does', async () => {
    const longestQueue = async (cc: string, parameters: object = {}) => {
      const scenario = parseScenario({
        name: 'incast',
        duration: '4ms',
        topology: { kind: 'star', hosts: 5, rate: '10Gbps', delay: '1us' },
        nic: { recovery: 'capped-repeat', cc: { name: cc, ...parameters } },
        flows: [{ kind: 'flows', from: 'h0..h3', to: 'h4', message: '64KiB' }],
      });
      const result = await runScenario(scenario, { realNowNs: () => 0 });
      return result.summary.queueMeanBytes;
    };
    const free = await longestQueue('none');
    const windowed = await longestQueue('delay-window', { targetRttNs: '20us', initialWindowBytes: '8KB' });
    expect(windowed).toBeLessThan(free / 2);
  });
});
