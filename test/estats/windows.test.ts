import { describe, expect, it } from 'vitest';
import { COUNTER_NAMES } from '../../src/memory/ring/counters.js';
import { STATUS_SUCCESS, WC_RDMA_READ, WC_RDMA_WRITE } from '../../src/memory/ring/enums.js';
import { TelemetryPage } from '../../src/memory/ring/telemetry-page.js';
import { UNLIMITED_RATE } from '../../src/verbs/estats/allowed-rate.js';
import { Estats } from '../../src/verbs/estats/estats.js';
import { GroupTable } from '../../src/verbs/estats/group-table.js';
import { Histogram } from '../../src/verbs/estats/histogram.js';
import { snapshotOf } from '../../src/verbs/estats/snapshot.js';
import { STAGE_T6_T1 } from '../../src/verbs/estats/stages.js';
import { type TelemetryWindow, WindowHistory } from '../../src/verbs/estats/window-history.js';

const MINUTE = 60e9;
const DEPTH = 8;
const IDENTITY = { pid: 1, address: '192.0.2.1', port: 'none', engine: 'inline' } as const;

/** An endpoint whose clock is the test, and work that takes as long as it says. */
class Endpoint {
  now = 1000;
  readonly estats: Estats;

  constructor(groupsMax = 1024) {
    const counters = new Float64Array(COUNTER_NAMES.length);
    this.estats = new Estats({ nowNs: () => this.now, epochMs: 0, counters, groupsMax });
  }

  connect(qpn: number) {
    const page = new TelemetryPage(new ArrayBuffer(TelemetryPage.bytesFor(DEPTH)), DEPTH);
    const connection = this.estats.watch(qpn, page, {
      inspect: async () => ({ state: 'RTS' }),
      allowedRate: async () => UNLIMITED_RATE,
    });
    connection.connected('192.0.2.2', qpn + 1);
    return connection;
  }

  /** One work request that takes so long in the NIC and is polled at once. */
  work(connection: ReturnType<Endpoint['connect']>, ns: number, opcode = WC_RDMA_WRITE): void {
    connection.posted(0, this.now);
    for (const stamp of [1, 2, 3, 4]) connection.page.stamps[stamp] = this.now + ns;
    this.now += ns;
    connection.polled(0, STATUS_SUCCESS, opcode, this.now);
  }

  snapshot(minutes = 1) {
    return snapshotOf(this.estats, IDENTITY, minutes);
  }
}

describe('windows', () => {
  it('last a minute; what is asked for is the open one and those that ended in the time asked for', () => {
    const endpoint = new Endpoint();
    const connection = endpoint.connect(1);
    endpoint.work(connection, 5000);
    endpoint.now = 1.5 * MINUTE;
    endpoint.work(connection, 6000);
    endpoint.now = 2.5 * MINUTE;
    endpoint.work(connection, 7000);
    const count = (minutes: number) => endpoint.snapshot(minutes).groups.find((row) => row.stage === 't6_t1')?.count;
    expect(count(0)).toBe(1);
    expect(count(1)).toBe(2);
    expect(count(60)).toBe(3);
    expect(endpoint.snapshot(60).windowStart).toBe(new Date(0.001).toISOString());
  });

  it('without samples leave the next one at a whole number of minutes', () => {
    const endpoint = new Endpoint();
    const connection = endpoint.connect(1);
    endpoint.work(connection, 5000);
    endpoint.now = 10.4 * MINUTE;
    const { startNs, endNs } = endpoint.estats.currentWindow();
    expect(startNs).toBe(1000 + 10 * MINUTE);
    expect(endNs).toBe(endpoint.now);
  });

  it('hold what connections added up in them', () => {
    const endpoint = new Endpoint();
    const connection = endpoint.connect(1);
    connection.page.counters[0] = 10;
    endpoint.now = 1.5 * MINUTE;
    endpoint.estats.currentWindow();
    connection.page.counters[0] = 25;
    expect(endpoint.snapshot(0).qps[0].covered.counters.tx_packets).toBe(15);
    expect(endpoint.snapshot(2).qps[0].covered.counters.tx_packets).toBe(25);
    expect(endpoint.snapshot(2).qps[0].total.counters.tx_packets).toBe(25);
  });

  it('forget connections that were closed, but not what their work took', () => {
    const endpoint = new Endpoint();
    const connection = endpoint.connect(1);
    endpoint.work(connection, 5000);
    connection.closed();
    expect(endpoint.snapshot().qps).toEqual([]);
    expect(endpoint.snapshot().groups[0].conn).toBe(connection.name);
  });
});

describe('the history', () => {
  const window = (n: number, samples: number): TelemetryWindow => {
    const histogram = new Histogram();
    for (let i = 0; i < samples; i++) histogram.record(2 ** 11 * 1.1 ** i);
    const stages = Array.from({ length: 7 }, () => histogram.toSparse());
    return {
      startNs: n * MINUTE,
      endNs: (n + 1) * MINUTE,
      groups: [{ conn: 'c', op: 'SEND', status: 'SUCCESS', stages }],
      connections: new Map(),
      loopDelay: histogram.toSparse(),
    };
  };

  it('keeps an hour', () => {
    const history = new WindowHistory();
    for (let n = 0; n < 100; n++) history.push(window(n, 1));
    expect(history.since(0).map(({ startNs }) => startNs / MINUTE)).toEqual(
      Array.from({ length: 60 }, (_, i) => i + 40),
    );
    expect(history.droppedEarly).toBe(0);
  });

  it('keeps less when the buckets of busy windows would be too many, and says so', () => {
    const history = new WindowHistory(500);
    for (let n = 0; n < 10; n++) history.push(window(n, 20)); // 7 x 20 buckets each
    expect(history.since(0)).toHaveLength(3);
    expect(history.droppedEarly).toBe(7);
  });
});

describe('the history of many connections', () => {
  it('is shorter, too', () => {
    const endpoint = new Endpoint();
    for (let qpn = 1; qpn <= 1000; qpn++) endpoint.connect(qpn);
    for (let minute = 1; minute <= 20; minute++) {
      endpoint.now = minute * MINUTE + 2000;
      endpoint.estats.currentWindow();
    }
    expect(endpoint.estats.history.since(0)).toHaveLength(8);
    expect(endpoint.snapshot().bounds.windowsDroppedEarly).toBe(12);
  });
});

describe('groups', () => {
  it('that find no place are one group, "other", and are counted', () => {
    const endpoint = new Endpoint(3);
    for (let qpn = 1; qpn <= 5; qpn++) endpoint.work(endpoint.connect(qpn), 5000);
    const { groups, bounds } = endpoint.snapshot();
    const whole = groups.filter(({ stage }) => stage === 't6_t1');
    expect(whole.map(({ conn, count }) => [conn, count])).toEqual([
      ['0x1>192.0.2.2/0x2', 1],
      ['0x2>192.0.2.2/0x3', 1],
      ['0x3>192.0.2.2/0x4', 1],
      ['other', 2],
    ]);
    expect(bounds).toMatchObject({ groups: 3, overflowedSamples: 2 });
  });

  it('give up their place when a whole window did not use them', () => {
    const endpoint = new Endpoint(2);
    const [first, second, third] = [1, 2, 3].map((qpn) => endpoint.connect(qpn));
    endpoint.work(first, 5000);
    endpoint.work(second, 5000);
    endpoint.now = 1.1 * MINUTE;
    endpoint.work(second, 5000);
    endpoint.now = 2.1 * MINUTE;
    endpoint.work(third, 5000);
    endpoint.work(first, 5000); // Its old group must not take the sample.
    const names = (minutes: number) => new Set(endpoint.snapshot(minutes).groups.map(({ conn }) => conn));
    expect(names(0)).toEqual(new Set([third.name, 'other']));
  });

  it('are by operation, too', () => {
    const endpoint = new Endpoint();
    const connection = endpoint.connect(1);
    endpoint.work(connection, 5000);
    endpoint.work(connection, 9000, WC_RDMA_READ);
    expect(new Set(endpoint.snapshot().groups.map(({ op }) => op))).toEqual(new Set(['RDMA_WRITE', 'RDMA_READ']));
  });

  it('call a sample slow from ten times the last p99 on, and never below 100 ms', () => {
    const table = new GroupTable(1);
    const group = table.find({ conn: 'c', op: 'SEND', status: 'SUCCESS' });
    expect(group.slowNs).toBe(100e6);
    group.stages.record(0, 1, 2, 3, 4, 50e6);
    table.startWindow();
    expect(group.slowNs).toBe(500e6);
    group.stages.record(0, 1, 2, 3, 4, 1e6);
    table.startWindow();
    expect(group.slowNs).toBe(100e6);
    expect(group.window().stages[STAGE_T6_T1].count).toBe(0);
  });
});
