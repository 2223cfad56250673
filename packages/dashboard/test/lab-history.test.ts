import { describe, expect, it } from 'vitest';
import { COUNTER_NAMES, type CounterName } from '../../../src/memory/ring/counters.js';
import type { LiveSwitchPortCounters } from '../../lab/src/live/linked-switch.js';
import { newSwitchPortCounters } from '../../lab/src/switch/switch-counters.js';
import type { LabEndpointSample } from '../src/lab/lab-endpoint.js';
import { LabHistory, type LabReading } from '../src/lab/lab-history.js';

function endpoint(counters: Partial<Record<CounterName, number>>, messages: readonly number[] = []): LabEndpointSample {
  const zeros = Object.fromEntries(COUNTER_NAMES.map((name) => [name, 0])) as Record<CounterName, number>;
  return {
    counters: { ...zeros, ...counters },
    messagesCompleted: messages,
    latency: { count: 0, p50Ns: 0, p99Ns: 0, maxNs: 0 },
    bars: [],
    rates: messages.map(() => ({ rateBps: null, alpha: null })),
    failures: [],
  };
}

function port(counters: Partial<LiveSwitchPortCounters>): LiveSwitchPortCounters {
  return { ...newSwitchPortCounters(), rx_unknown_peers: 0, tx_errors: 0, ...counters };
}

const settings = { op: 'write', scheme: 'go-back-n', loss: 'none', link: 'fast', cc: 'none' } as const;

function reading(a: LabEndpointSample, change: Partial<LabReading> = {}): LabReading {
  return { settings, a, b: endpoint({}), ports: { a: port({}), b: port({}) }, queues: { a: 0, b: 0 }, ...change };
}

const newHistory = () =>
  new LabHistory({
    messageBytes: 1000,
    mtu: 100,
    queuePairs: 2,
    choices: { schemes: [], schemeSummaries: {}, rateControls: [], rateControlSummaries: {} },
  });

describe('the history of the lab', () => {
  it('makes rates of what counters have moved, by queue pair and in sum', () => {
    const history = newHistory();
    history.reconnected([0x11, 0x12]);
    const first = history.add(reading(endpoint({ tx_data_packets: 500 }, [10, 20])));
    expect(first.sample).toMatchObject({ number: 1, goodputBps: 0, linkBps: 0 });
    const { sample } = history.add(reading(endpoint({ tx_data_packets: 600 }, [11, 23])));
    const seconds = (sample.timeNs - first.sample.timeNs) / 1e9;
    expect(sample.queuePairs.map(({ goodputBps }) => goodputBps * seconds)).toEqual([
      expect.closeTo(8000),
      expect.closeTo(24_000),
    ]);
    expect(sample.goodputBps * seconds).toBeCloseTo(32_000);
    expect(sample.linkBps * seconds).toBeCloseTo(100 * 100 * 8);
  });

  it('takes the mean over the last four samples', () => {
    const history = newHistory();
    const samples = [0, 40, 40, 40, 40, 40].map(
      (packets) => history.add(reading(endpoint({ tx_data_packets: packets }))).sample,
    );
    expect(samples.map(({ linkBps }) => linkBps > 0)).toEqual([false, true, true, true, true, false]);
  });

  it('counts for a READ what completes at B, and what A sends', () => {
    const history = newHistory();
    history.reconnected([0x11, 0x12]);
    const read = { ...settings, op: 'read' } as const;
    history.add(reading(endpoint({}), { settings: read, b: endpoint({}, [0, 0]) }));
    const { sample } = history.add(
      reading(endpoint({ tx_data_packets: 1 }), { settings: read, b: endpoint({}, [1, 0]) }),
    );
    expect(sample.goodputBps).toBeGreaterThan(0);
    expect(sample.linkBps).toBeGreaterThan(0);
  });

  it('tells of losses together, once in eight samples', () => {
    const history = newHistory();
    const events = Array.from({ length: 17 }, (_, i) => history.add(reading(endpoint({ packet_seq_err: i }))).events);
    const told = events.flatMap((list, i) => list.map(({ text }) => [i, text]));
    expect(told).toEqual([
      [8, 'NAK: PSN sequence error, 8 times'],
      [16, 'NAK: PSN sequence error, 8 times'],
    ]);
  });

  it('does not compare with what was counted before a restart', () => {
    const history = newHistory();
    history.reconnected([0x11, 0x12]);
    history.add(reading(endpoint({ tx_data_packets: 5000 }, [50, 50])));
    history.restarted();
    const { sample } = history.add(reading(endpoint({ tx_data_packets: 3 }, [0, 0])));
    expect(sample).toMatchObject({ number: 2, goodputBps: 0, linkBps: 0, totals: { packetsSent: 3 } });
  });

  it('keeps four minutes of samples and a hundred events', () => {
    const history = newHistory();
    for (let i = 0; i < 1000; i++) history.add(reading(endpoint({})));
    for (let i = 0; i < 120; i++) history.note('settings', `${i}`);
    expect(history.state.samples).toHaveLength(960);
    expect(history.state.samples.at(-1)!.number).toBe(1000);
    expect(history.state.events.map(({ text }) => text)).toEqual(Array.from({ length: 100 }, (_, i) => `${i + 20}`));
  });

  it('says that a queue pair gave up', () => {
    const failed = { ...endpoint({}), failures: ['RETRY_EXC_ERR'] };
    const { events } = newHistory().add(reading(failed));
    expect(events).toMatchObject([{ kind: 'failure', text: expect.stringContaining('RETRY_EXC_ERR') }]);
  });
});
