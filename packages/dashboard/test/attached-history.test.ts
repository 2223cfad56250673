import { describe, expect, it } from 'vitest';
import type { WatchedDocument } from '../../command/src/programs/watched.js';
import { AttachedHistory } from '../src/attached/history.js';
import type { AttachedDisk, AttachedEndpoint, AttachedSwitch } from '../src/messages/attached.js';
import { diskDocument, endpointDocument, switchDocument } from './watched-documents.js';

const PLACE = '/run/rocev2/7-1.sock';
const S = 1e9;

/** One document a second at one place. */
function readEach(...documents: readonly WatchedDocument[]) {
  const history = new AttachedHistory([]);
  for (const [i, document] of documents.entries()) history.read(PLACE, document, i * S);
  const { programs, events } = history.state;
  return { program: programs[0], texts: events.map(({ text }) => text), kinds: events.map(({ kind }) => kind) };
}

const PATH = {
  state: 'RDMA',
  failovers: 0,
  moves: 0,
  resentRequests: 0,
  serverRestarts: 0,
  outages: 0,
  outage: null,
} as const;

describe('rates from two readings', () => {
  it('are what moved between them, an endpoint and its connections', () => {
    const { program } = readEach(
      endpointDocument({ counters: { tx_bytes: 1000, rx_bytes: 0 }, qps: { c: { tx_bytes: 1000 } } }),
      endpointDocument({
        uptimeSeconds: 2,
        counters: { tx_bytes: 3000, rx_bytes: 500, tx_retransmitted: 4, direct_reads: 2, direct_bytes: 250 },
        qps: { c: { tx_bytes: 2500, rx_bytes: 100 }, young: { tx_bytes: 50 } },
      }),
    );
    const [sample] = (program as AttachedEndpoint).samples;
    expect(sample).toMatchObject({
      number: 1,
      timeNs: S,
      outBps: 16_000,
      inBps: 4000,
      resentPerSecond: 4,
      copiedBps: 2000,
    });
    expect(sample.totals).toMatchObject({ resent: 4, copies: 2 });
    expect(sample.connections).toMatchObject([
      { conn: 'c', sentBps: 12_000, receivedBps: 800 },
      { conn: 'young', sentBps: 400 },
    ]);
  });

  it('are there from the second reading on', () => {
    expect(readEach(endpointDocument({ counters: { tx_bytes: 1e9 } })).program.samples).toEqual([]);
  });

  it('of the ports of a switch, with drops by reason', () => {
    const { program } = readEach(
      switchDocument(1, { a: { counters: { rx_bytes: 10, tx_dropped_fault: 1 } }, b: {} }),
      switchDocument(2, {
        a: { counters: { rx_bytes: 110, tx_dropped_fault: 3, tx_dropped_queue_full: 1 } },
        b: { counters: { tx_bytes: 50, tx_ecn_marked: 7, tx_prio3_pause: 2 }, queueBytes: 99 },
      }),
    );
    const { samples, detail, health } = program as AttachedSwitch;
    expect(samples[0]).toMatchObject({ inBps: 800, outBps: 400 });
    expect(samples[0].ports).toMatchObject([
      { name: 'a', receivedBps: 800, droppedPerSecond: 3 },
      { name: 'b', sentBps: 400, queueBytes: 99, markedPerSecond: 7, pausesSentPerSecond: 2 },
    ]);
    expect(samples[0].totals).toMatchObject({ dropped: 4, marked: 7, pausesSent: 2, queueBytes: 99 });
    expect(detail.ports[0].drops).toEqual([
      { reason: 'tx_dropped_fault', count: 3 },
      { reason: 'tx_dropped_queue_full', count: 1 },
    ]);
    expect(health).toEqual({ isGood: false, text: 'drops packets' });
  });

  it('of the operations of a disk', () => {
    const { program } = readEach(
      diskDocument(1, { read: { requests: 10, bytes: 4096 } }),
      diskDocument(2, { read: { requests: 30, bytes: 8192 }, write: { requests: 1, bytes: 512 } }),
    );
    const [sample] = (program as AttachedDisk).samples;
    expect(sample).toMatchObject({ outBps: 32_768, inBps: 4096 });
    expect(sample.ops.slice(0, 2)).toEqual([
      { op: 'read', perSecond: 20, bps: 32_768 },
      { op: 'write', perSecond: 1, bps: 4096 },
    ]);
  });
});

describe('a program that was started anew at the same place', () => {
  const before = endpointDocument({ uptimeSeconds: 50, counters: { tx_bytes: 1e9, tx_retransmitted: 9 } });
  const later = { uptimeSeconds: 1, counters: { tx_bytes: 1000 } };

  it.each([
    ['another process', endpointDocument({ pid: 99, ...later, uptimeSeconds: 60 })],
    ['a younger one of the same number', endpointDocument(later)],
  ])('is another program, not one with a negative rate: %s', (_, document) => {
    const history = new AttachedHistory([]);
    history.read(PLACE, before, 0);
    history.read(PLACE, endpointDocument({ uptimeSeconds: 51, counters: { tx_bytes: 2e9 } }), S);
    const [{ id }] = history.state.programs;
    const messages = history.read(PLACE, document, 2 * S);
    expect(messages.map(({ name }) => name)).toEqual(['gone', 'event', 'program', 'event']);
    expect(history.state.programs).toMatchObject([{ pid: document.pid, samples: [] }]);
    expect(history.state.programs[0].id).not.toBe(id);
    expect(history.state.events.map(({ kind }) => kind)).toEqual(['appeared', 'ended', 'appeared']);
  });

  it('and a connection that begins anew under its old name has moved by what it says', () => {
    const { program } = readEach(
      endpointDocument({ qps: { c: { tx_bytes: 1e9 } } }),
      endpointDocument({ uptimeSeconds: 2, qps: { c: { tx_bytes: 125 } } }),
    );
    expect((program as AttachedEndpoint).samples[0].connections[0].sentBps).toBe(1000);
  });
});

describe('events', () => {
  it('tell once in two readings what was lost, repaired and given up', () => {
    const at = (uptimeSeconds: number, tx_retransmitted: number) =>
      endpointDocument({
        uptimeSeconds,
        counters: { tx_retransmitted, local_ack_timeout_err: uptimeSeconds > 3 ? 1 : 0 },
      });
    const { texts } = readEach(at(1, 0), at(2, 2), at(3, 5), at(4, 5), at(5, 5));
    expect(texts.slice(1)).toEqual([
      'endpoint 7 on 192.0.2.1: packet sent again, 2 times',
      'endpoint 7 on 192.0.2.1: packet sent again, 3 times',
      'endpoint 7 on 192.0.2.1: acknowledgement timeout',
    ]);
  });

  it('tell of each dump once, and not of those somebody asked for', () => {
    const dump = { time: '2026-01-01T00:00:01.000Z', conn: 'c', op: 'RDMA_WRITE', status: 'SUCCESS', wholeNs: 2e9 };
    const dumps = [
      { ...dump, reason: 'slow' as const },
      { ...dump, time: '2026-01-01T00:00:02.000Z', reason: 'asked' as const },
    ];
    const { texts, kinds } = readEach(
      endpointDocument({}),
      ...[2, 3, 4, 5].map((uptimeSeconds) => endpointDocument({ uptimeSeconds, rest: { dumps } })),
    );
    expect(texts.slice(1)).toEqual(['endpoint 7 on 192.0.2.1: slow: RDMA_WRITE after 2.00 s, c; dumped']);
    expect(kinds[1]).toBe('slow');
  });

  it('name the connection of a dump as the list of connections does', () => {
    const conn = '0x11>10.0.0.2/0x22';
    const dumps = [
      { reason: 'slow' as const, time: '2026-01-01T00:00:01Z', conn, op: 'SEND', status: 'SUCCESS', wholeNs: 1e6 },
    ];
    const { texts } = readEach(endpointDocument({}), endpointDocument({ uptimeSeconds: 2, rest: { dumps } }));
    expect(texts.at(-1)).toBe(
      'endpoint 7 on 192.0.2.1: slow: SEND after 1.00 ms, to 10.0.0.2 (QP 0x11 → 0x22); dumped',
    );
  });

  it('tell of dumps of the same kind of work together, with the longest', () => {
    const dump = { reason: 'error' as const, op: 'RDMA_READ', status: 'RETRY_EXC_ERR' };
    const dumps = [1, 3, 2].map((n) => ({ ...dump, time: `2026-01-01T00:00:0${n}Z`, conn: `c${n}`, wholeNs: n * 1e9 }));
    const { texts, kinds } = readEach(endpointDocument({}), endpointDocument({ uptimeSeconds: 2, rest: { dumps } }));
    expect(texts.slice(1)).toEqual([
      'endpoint 7 on 192.0.2.1: RDMA_READ failed with RETRY_EXC_ERR after 3.00 s, 3 times; dumped',
    ]);
    expect(kinds[1]).toBe('failure');
  });

  it('tell of an outage of the storage server, of another disk behind its address, and of the end', () => {
    const away = { seconds: 3, reason: 'ECONNREFUSED', isWrongDisk: false };
    const documents = [
      diskDocument(1, {}),
      diskDocument(2, {}, { path: { ...PATH, outages: 1, outage: away } }),
      diskDocument(3, {}, { path: { ...PATH, outages: 1, outage: { ...away, isWrongDisk: true } } }),
      diskDocument(4, {}, { path: { ...PATH, outages: 1 } }),
    ];
    const healths = [2, 3, 4].map((count) => readEach(...documents.slice(0, count)).program.health.text);
    expect(healths.slice(0, 2)).toEqual([
      'the storage server cannot be reached',
      'the storage server has another disk',
    ]);
    const { texts } = readEach(...documents);
    expect(texts.slice(1).map((text) => text.replace(/^.*?: /, ''))).toEqual([
      'the storage server cannot be reached',
      'the storage server is back',
    ]);
  });

  it('tell of a failover and of the way back', () => {
    const path = PATH;
    const tcp = { connections: { rdma: 0, tcp: 1 }, path: { ...path, state: 'HOLD_DOWN', failovers: 1 } } as const;
    const back = { path: { ...path, failovers: 1 } };
    const documents = [
      diskDocument(1, {}),
      diskDocument(2, {}, tcp),
      diskDocument(3, {}, tcp),
      diskDocument(4, {}, back),
    ];
    expect(readEach(...documents.slice(0, 3)).program.health).toEqual({ isGood: false, text: 'RDMA failed: over TCP' });
    const { texts, program } = readEach(...documents);
    expect(texts.slice(1).map((text) => text.replace(/^.*?: /, ''))).toEqual([
      'failover to TCP',
      'connections: 0 over RDMA, 1 over TCP',
      'back on RDMA',
      'connections: 1 over RDMA, 0 over TCP',
    ]);
    expect(program.health.isGood).toBe(true);
  });

  it('tell of both where they come between two readings', () => {
    const { texts } = readEach(diskDocument(1, {}), diskDocument(2, {}, { path: { ...PATH, failovers: 1 } }));
    expect(texts.slice(1).map((text) => text.replace(/^.*?: /, ''))).toEqual(['failover to TCP', 'back on RDMA']);
  });

  it('tell of a pause storm', () => {
    const { texts, program } = readEach(
      switchDocument(1, { a: {} }),
      switchDocument(2, { a: { counters: { pfcwd_storms: 1 }, stormPriorities: [3] } }),
    );
    expect(texts[1]).toContain('pause storm');
    expect(program.health).toEqual({ isGood: false, text: 'pause storm at port a' });
  });

  it('are bounded, and so are samples', () => {
    const history = new AttachedHistory([]);
    for (let n = 0; n < 300; n++) {
      history.read(PLACE, endpointDocument({ uptimeSeconds: n, counters: { tx_retransmitted: n } }), n * S);
    }
    const { programs, events } = history.state;
    expect(programs[0].samples).toHaveLength(240);
    expect(events).toHaveLength(100);
    expect(programs[0].samples.at(-1)!.number).toBe(299);
  });
});

it('the health of a program remembers trouble of the last seconds, and forgets it then', () => {
  const history = new AttachedHistory([]);
  const healths = Array.from({ length: 20 }, (_, i) => {
    const tx_retransmitted = i < 3 ? 0 : 5;
    history.read(PLACE, endpointDocument({ uptimeSeconds: i, counters: { tx_retransmitted } }), i * S);
    return history.state.programs[0].health.text;
  });
  expect(new Set(healths.slice(0, 3))).toEqual(new Set(['good']));
  expect(new Set(healths.slice(3, 8))).toEqual(new Set(['sends packets again']));
  expect(new Set(healths.slice(14))).toEqual(new Set(['good']));
});

describe('a program that', () => {
  it('ends disappears, with an event', () => {
    const history = new AttachedHistory([]);
    history.read(PLACE, endpointDocument({}), 0);
    expect(history.gone(PLACE, S).map(({ name }) => name)).toEqual(['gone', 'event']);
    expect(history.state.programs).toEqual([]);
    expect(history.gone(PLACE, S)).toEqual([]);
  });

  it('does not answer stays, and its health says so until it does', () => {
    const history = new AttachedHistory([]);
    history.read(PLACE, endpointDocument({}), 0);
    history.silent(PLACE);
    expect(history.state.programs[0].health).toEqual({ isGood: false, text: 'does not answer' });
    history.read(PLACE, endpointDocument({ uptimeSeconds: 9 }), 9 * S);
    expect(history.state.programs[0].health).toEqual({ isGood: true, text: 'good' });
  });
});

it('of many connections the busiest eight are shown, in their order', () => {
  const qps = Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`c${i}`, { tx_bytes: i }]));
  const { program } = readEach(endpointDocument({ qps }), endpointDocument({ uptimeSeconds: 2, qps }));
  const { samples, detail } = program as AttachedEndpoint;
  expect(samples[0].connections.map(({ conn }) => conn)).toEqual([
    'c12',
    'c13',
    'c14',
    'c15',
    'c16',
    'c17',
    'c18',
    'c19',
  ]);
  expect(detail.connectionCount).toBe(20);
});

it('tells of protected connections and of what was dropped because it was not', () => {
  const counts = { sealed: 5, opened: 4, replayed: 1, forged: 2, rekeys: 3 };
  const protection = { peer: 'alice', cipher: 'aes-128-gcm', sendSpi: 1, receiveSpi: 2, ...counts };
  const secured = (facts: Parameters<typeof endpointDocument>[0]) => {
    const document = endpointDocument({ ...facts, qps: { c: {}, plain: {} } });
    const [first, ...others] = document.qps;
    return { ...document, qps: [{ ...first, protection }, ...others] };
  };
  const { program, texts } = readEach(
    secured({ counters: { secure_rekeys: 1 } }),
    secured({ uptimeSeconds: 2, counters: { secure_rekeys: 3, secure_drop_forged: 2, secure_drop_unknown_spi: 1 } }),
  );
  const { detail, health } = program as AttachedEndpoint;
  expect(detail.protections).toEqual([{ conn: 'c', ...protection }]);
  expect(detail.protectionDrops).toEqual([
    { reason: 'unknown spi', count: 1 },
    { reason: 'forged', count: 2 },
  ]);
  expect(health).toEqual({ isGood: false, text: 'drops packets that are forged, replayed or plain' });
  expect(texts.slice(1)).toEqual([
    'endpoint 7 on 192.0.2.1: keys of protected packets changed, 2 times',
    'endpoint 7 on 192.0.2.1: packet dropped: no peer has sealed it, 3 times',
  ]);
  const { program: plain } = readEach(endpointDocument({ qps: { c: {} } }));
  expect(plain.detail).toMatchObject({ protections: [], protectionDrops: [] });
});
