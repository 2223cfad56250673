/** What the dashboard makes of a cluster of extents. */

import { describe, expect, it } from 'vitest';
import type { ClusterDocument } from '../../command/src/programs/cluster-document.js';
import { parseWatched } from '../../command/src/programs/watched.js';
import { AttachedHistory } from '../src/attached/history.js';
import type { AttachedCluster } from '../src/messages/attached.js';
import { clusterDocument } from './watched-documents.js';

const PLACE = '/run/rocev2/10-1.sock';
const S = 1e9;

/** One document a second. */
function readEach(...documents: readonly ClusterDocument[]) {
  const history = new AttachedHistory([]);
  for (const [i, document] of documents.entries()) history.read(PLACE, document, i * S);
  const { programs, events } = history.state;
  const told = events.slice(1).map(({ kind, text }) => [kind, text.replace(/^cluster 10 on [\d.:]+: /, '')]);
  return { program: programs[0] as AttachedCluster, told };
}

/** What each of these says first is told after the second one. */
const eventsOf = (before: ClusterDocument, now: ClusterDocument) => readEach(before, now).told;

const DOWN = { state: 'down', silentMs: 6000 } as const;
const waiting = (uptimeSeconds: number, leader: string | null) =>
  clusterDocument(uptimeSeconds, {}, { leader, status: null });

describe('a cluster', () => {
  it('has nodes by state, extents by state, space, and rates from two readings', () => {
    const counters = { seals: 2, copies: 1, rebuilds: 0, codings: 0 };
    const { program } = readEach(
      clusterDocument(1, { nodes: { 1: { usedBytes: 1000 }, 2: { usedBytes: 5000 } }, counters }),
      clusterDocument(2, {
        nodes: {
          1: { usedBytes: 3000 },
          2: { usedBytes: 4000, state: 'suspect', silentMs: 3000 },
          3: DOWN,
          4: { state: 'read-only', readOnly: 'the disk is full', damaged: 3, repaired: 1 },
        },
        extents: { open: 1, sealed: 7, coded: 4, underReplicated: 2, copying: 1, coding: 2 },
        counters: { ...counters, seals: 5, copies: 2, rebuilds: 3, codings: 4 },
      }),
    );
    const [{ inBps, outBps, reading }] = program.samples;
    expect([inBps, outBps]).toEqual([8000, 0]); // 2000 bytes more, 1000 fewer.
    expect(reading).toMatchObject({ up: 2, suspect: 1, down: 1, open: 1, replicated: 3, coded: 4, underReplicated: 2 });
    expect(reading).toMatchObject({ underWay: 3, usedBytes: 7000, freeBytes: 3e9 });
    expect(reading).toMatchObject({ sealsPerSecond: 3, repairsPerSecond: 4, codingsPerSecond: 4 });
    expect(reading!.totals).toEqual({ seals: 5, repairs: 5, codings: 4, damaged: 2 });
    expect(reading!.nodes.map(({ state }) => state)).toEqual(['up', 'suspect', 'down', 'read-only']);
    expect(program.detail.nodes[3]).toMatchObject({ node: 4, readOnly: 'the disk is full', domain: 'node 4' });
  });

  it('does not take for stored what a manager that has just begun hears of', () => {
    const unheard = { usedBytes: 0, freeBytes: 0 };
    const { program } = readEach(
      clusterDocument(1, { nodes: { 1: unheard, 2: { usedBytes: 10 } } }),
      clusterDocument(2, { nodes: { 1: { usedBytes: 1e9 }, 2: { usedBytes: 20 }, 5: { usedBytes: 1e9 } } }),
    );
    expect(program.samples[0].inBps).toBe(80);
  });

  it('sees nodes go, come back and join', () => {
    expect(eventsOf(clusterDocument(1), clusterDocument(2, { nodes: { 2: DOWN } }))).toEqual([
      ['failure', 'node 2 is down'],
    ]);
    expect(eventsOf(clusterDocument(1, { nodes: { 2: DOWN } }), clusterDocument(2))).toEqual([
      ['notice', 'node 2 is back'],
    ]);
    expect(eventsOf(clusterDocument(1), clusterDocument(2, { nodes: { 1: DOWN, 3: DOWN, 4: {} } }))).toEqual([
      ['failure', 'nodes 1 and 3 are down'],
      ['notice', 'node 4 is there'],
    ]);
    const all = Object.fromEntries(Array.from({ length: 9 }, (_, k) => [k + 1, DOWN]));
    const well = Object.fromEntries(Array.from({ length: 9 }, (_, k) => [k + 1, {}]));
    expect(eventsOf(clusterDocument(1, { nodes: well }), clusterDocument(2, { nodes: all }))).toEqual([
      ['failure', '9 nodes are down'],
    ]);
    const silent = { state: 'suspect', silentMs: 3000 } as const;
    expect(eventsOf(clusterDocument(1), clusterDocument(2, { nodes: { 3: silent } }))).toEqual([
      ['slow', 'node 3 is silent'],
    ]);
  });

  it('tells nothing where nothing has changed', () => {
    const same = { nodes: { 2: DOWN }, extents: { underReplicated: 4 }, counters: { copies: 3 } };
    expect(eventsOf(clusterDocument(1, same), clusterDocument(2, same))).toEqual([]);
  });

  it('tells of redundancy that is lost and restored, and of repairs', () => {
    const broken = clusterDocument(2, { extents: { underReplicated: 3, unavailable: 1 } });
    expect(eventsOf(clusterDocument(1), broken)).toEqual([
      ['failure', '1 extent cannot be read'],
      ['failure', '3 extents under-replicated'],
    ]);
    expect(eventsOf(broken, clusterDocument(3, { counters: { copies: 2, rebuilds: 1, refusedDisks: 1 } }))).toEqual([
      ['notice', 'all extents can be read again'],
      ['notice', 'all extents are whole again'],
      ['notice', 'replica rebuilt, 2 times'],
      ['notice', 'fragment rebuilt'],
      ['failure', 'folder refused: an older copy'],
    ]);
  });

  it('is well or not, the worst first', () => {
    const health = (...of: Parameters<typeof clusterDocument>) => readEach(clusterDocument(...of)).program.health;
    expect(health(1)).toEqual({ isGood: true, text: 'good' });
    const worse = [
      [{ nodes: { 1: { state: 'read-only', readOnly: 'full' } } }, 'node 1 is read-only'],
      [{ extents: { underReplicated: 2 } }, '2 extents under-replicated'],
      [{ nodes: { 2: { state: 'suspect' } } }, 'node 2 is silent'],
      [{ nodes: { 3: { state: 'down' } } }, 'node 3 is down'],
      [{ extents: { unavailable: 1 } }, '1 extent cannot be read'],
    ] as const;
    for (const [i, [facts, text]] of worse.entries()) {
      expect(health(1, facts)).toEqual({ isGood: false, text });
      const { nodes, extents } = (worse[i - 1]?.[0] ?? {}) as Parameters<typeof clusterDocument>[1] & object;
      const both = { nodes: { ...nodes, ...('nodes' in facts && facts.nodes) } };
      const levels = { extents: { ...extents, ...('extents' in facts && facts.extents) } };
      expect(health(1, { ...both, ...levels })).toEqual({ isGood: false, text });
    }
  });
});

describe('of several managers', () => {
  it('one that waits says who leads, and has no cluster to show', () => {
    const { program, told } = readEach(waiting(1, '192.0.2.4:18528'), waiting(2, '192.0.2.4:18528'));
    expect(program.health).toEqual({ isGood: true, text: 'waits; 192.0.2.4:18528 leads' });
    expect(program.samples).toMatchObject([{ inBps: 0, outBps: 0, reading: null }]);
    expect(program.detail).toMatchObject({ leader: '192.0.2.4:18528', nodes: [], managers: [] });
    expect(told).toEqual([]);
  });

  it('the lead is seen to move', () => {
    expect(eventsOf(waiting(1, 'a:1'), waiting(2, null))).toEqual([['notice', 'no manager leads']]);
    expect(readEach(waiting(1, null)).program.health).toEqual({ isGood: false, text: 'no manager leads' });
    expect(eventsOf(waiting(1, null), waiting(2, 'b:1'))).toEqual([['notice', 'b:1 leads']]);
    const leads = readEach(waiting(1, null), clusterDocument(2, { counters: { seals: 7 } }));
    expect(leads.told).toEqual([['notice', 'leads']]);
    expect(leads.program.samples[0].reading).toMatchObject({ sealsPerSecond: 0, up: 3 }); // Nothing to compare with.
    expect(eventsOf(clusterDocument(1), waiting(2, 'b:1'))).toEqual([['notice', 'b:1 leads']]);
  });

  it('one that leads without its metadata says so', () => {
    const lost = (uptimeSeconds: number) =>
      clusterDocument(uptimeSeconds, {}, { status: null, trouble: 'etcd is away' });
    const { program, told } = readEach(clusterDocument(1), lost(2));
    expect(program.health).toEqual({ isGood: false, text: 'cannot tell how the cluster is: etcd is away' });
    expect(told).toEqual([['failure', 'cannot tell how the cluster is: etcd is away']]);
  });
});

describe('what other machines say', () => {
  it('is cut to what can be shown: long names, many nodes, many streams', () => {
    const long = 'x'.repeat(1000);
    const nodes = Object.fromEntries(
      Array.from({ length: 200 }, (_, k) => [k + 1, { domain: long, readOnly: long, ...(k === 150 && DOWN) }]),
    );
    const streams = Array.from({ length: 100 }, (_, k) => ({
      stream: `${k} ${long}`,
      extents: 1,
      coded: 0,
      sealedBytes: k,
      owner: long,
    }));
    const trouble = clusterDocument(1, {}, { status: null, leader: long, cluster: long, trouble: long });
    const { program } = readEach(clusterDocument(1, { nodes, streams }), clusterDocument(2, { nodes, streams }));
    const { detail, samples } = program;
    expect([detail.nodes.length, detail.nodeCount, detail.streams.length, detail.streamCount]).toEqual([
      64, 200, 32, 100,
    ]);
    expect(detail.nodes.at(-1)!.node).toBe(151); // The one in trouble.
    expect(samples[0].reading).toMatchObject({ up: 199, down: 1 });
    expect(detail.streams[0].sealedBytes).toBe(99);
    const longest = (value: unknown) =>
      Math.max(
        ...JSON.stringify(value)
          .split('"')
          .map(({ length }) => length),
      );
    expect(longest(program)).toBe(128);
    expect(longest(readEach(trouble).program.detail)).toBe(128);
  });

  it.each([
    ['another version', { version: 2 }],
    ['no status', { status: undefined }],
    ['a status that is no object', { status: 'well' }],
    ['no name of the leader', { leader: 7 }],
    ['numbers that are none', { uptimeSeconds: '1' }],
  ])('is no document with %s', (_, facts) => {
    const document = clusterDocument(1);
    expect(() => parseWatched({ ...document, ...facts })).toThrow();
    expect(parseWatched(document)).toEqual(document);
  });
});
