/** Names and reasons come from other machines, so they are cut to a bounded length. */

import type { ClusterDocument } from '@rocev2/command';
import type { ClusterDetail, ClusterReading } from '../messages/cluster-messages.js';
import { counted, firstTrouble, type ProgramEvent, type ProgramKind } from './program-kind.js';
import { type Change, growth, sum, type TimedChange } from './rates.js';

const NODES_SHOWN = 64;
const STREAMS_SHOWN = 32;
const MANAGERS_SHOWN = 16;
const NODES_TOLD = 4;
const TEXT_MAX = 128;

type Status = NonNullable<ClusterDocument['status']>;
type Node = Status['nodes'][number];

const URGENCY: readonly Node['state'][] = ['down', 'suspect', 'read-only', 'up'];

export const CLUSTER: ProgramKind<'cluster'> = {
  sample: (interval) => {
    const { now, before, seconds } = interval;
    if (now.status === null) return { inBps: 0, outBps: 0, reading: null };
    const moved = before.status === null ? 0 : filled(now.status, before.status);
    return {
      inBps: (8 * Math.max(0, moved)) / seconds,
      outBps: (8 * Math.max(0, -moved)) / seconds,
      reading: readingOf(now.status, interval),
    };
  },

  detail: ({ cluster, leader, trouble, status }): ClusterDetail => ({
    cluster: cut(cluster),
    leader: cut(leader),
    trouble: cut(trouble),
    managers: (status?.managers ?? [])
      .slice(0, MANAGERS_SHOWN)
      .map(({ address, leads, since }) => ({ address: cut(address), leads, since: cut(since) })),
    nodes: shownNodes(status).map((node) => ({
      ...node,
      address: cut(node.address),
      domain: cut(node.domain),
      readOnly: cut(node.readOnly),
    })),
    nodeCount: status?.nodes.length ?? 0,
    streams: [...(status?.streams ?? [])]
      .sort((a, b) => b.sealedBytes - a.sealedBytes)
      .slice(0, STREAMS_SHOWN)
      .map((stream) => ({ ...stream, stream: cut(stream.stream), owner: cut(stream.owner) })),
    streamCount: status?.streams.length ?? 0,
  }),

  health: ({ now: { leader, trouble, status } }) => {
    if (trouble !== null) return firstTrouble([`cannot tell how the cluster is: ${cut(trouble)}`]);
    if (leader === null) return firstTrouble(['no manager leads']);
    if (status === null) return { isGood: true, text: `waits; ${cut(leader)} leads` };
    const { underReplicated, unavailable } = status.extents;
    const inState = (state: Node['state']) => status.nodes.filter((node) => node.state === state);
    return firstTrouble([
      unavailable > 0 && `${extents(unavailable)} cannot be read`,
      saidOf(inState('down'), 'down'),
      saidOf(inState('suspect'), 'silent'),
      underReplicated > 0 && `${extents(underReplicated)} under-replicated`,
      saidOf(inState('read-only'), 'read-only'),
    ]);
  },

  events: ({ now, before }) => {
    if (now.status !== null && before.status !== null) return statusEvents({ now: now.status, before: before.status });
    if (now.status !== null) return [{ kind: 'notice', text: 'leads' }];
    if (now.trouble !== null && before.trouble === null)
      return [{ kind: 'failure', text: `cannot tell how the cluster is: ${cut(now.trouble)}` }];
    if (now.leader === before.leader) return [];
    return [{ kind: 'notice', text: now.leader === null ? 'no manager leads' : `${cut(now.leader)} leads` }];
  },
};

function readingOf(
  status: Status,
  { before: { status: before }, seconds }: TimedChange<ClusterDocument>,
): ClusterReading {
  const { nodes, extents, counters } = status;
  const count = (...states: readonly Node['state'][]) => nodes.filter(({ state }) => states.includes(state)).length;
  const perSecond = (counter: (of: Status) => number) =>
    before === null ? 0 : growth(counter(status), counter(before)) / seconds;
  return {
    nodes: shownNodes(status).map(({ node, state, usedBytes }) => ({ node, state, usedBytes })),
    up: count('up', 'read-only'),
    suspect: count('suspect'),
    down: count('down'),
    open: extents.open,
    replicated: extents.sealed - extents.coded,
    coded: extents.coded,
    underReplicated: extents.underReplicated,
    unavailable: extents.unavailable,
    underWay: extents.copying + extents.coding,
    usedBytes: sum(nodes.map(({ usedBytes }) => usedBytes)),
    freeBytes: sum(nodes.filter(({ state }) => state !== 'down').map(({ freeBytes }) => freeBytes)),
    sealsPerSecond: perSecond(({ counters }) => counters.seals),
    repairsPerSecond: perSecond(repairs),
    codingsPerSecond: perSecond(({ counters }) => counters.codings),
    totals: {
      seals: counters.seals,
      repairs: repairs(status),
      codings: counters.codings,
      damaged: sum(nodes.map(({ damaged, repaired }) => damaged - repaired)),
    },
  };
}

function repairs({ counters }: Status): number {
  return counters.copies + counters.rebuilds;
}

/**
 * What the nodes of both readings hold more than before. A manager that has just started does not know their usage yet:
 * they then report no space at all.
 */
function filled({ nodes }: Status, before: Status): number {
  const earlier = new Map(before.nodes.map((node) => [node.node, node]));
  return sum(
    nodes.map(({ node, usedBytes, freeBytes }) => {
      const then = earlier.get(node);
      const isKnown = (bytes: number) => bytes > 0;
      if (then === undefined || !isKnown(usedBytes + freeBytes) || !isKnown(then.usedBytes + then.freeBytes)) return 0;
      return usedBytes - then.usedBytes;
    }),
  );
}

function shownNodes(status: Status | null): Node[] {
  const nodes = [...(status?.nodes ?? [])].sort((a, b) => a.node - b.node);
  if (nodes.length <= NODES_SHOWN) return nodes;
  const urgent = nodes.sort((a, b) => URGENCY.indexOf(a.state) - URGENCY.indexOf(b.state)).slice(0, NODES_SHOWN);
  return urgent.sort((a, b) => a.node - b.node);
}

function statusEvents(change: Change<Status>): ProgramEvent[] {
  const { now, before } = change;
  const earlier = new Map(before.nodes.map(({ node, state }) => [node, state]));
  const became = (is: (node: Node, state: Node['state'] | undefined) => boolean) =>
    now.nodes.filter((node) => earlier.get(node.node) !== node.state && is(node, earlier.get(node.node)));
  const told = (kind: ProgramEvent['kind'], nodes: readonly Node[], what: string): ProgramEvent[] => {
    const text = saidOf(nodes, what);
    return text === false ? [] : [{ kind, text }];
  };
  const isBack = (state: Node['state'] | undefined) => state === 'down' || state === 'suspect';
  return [
    ...told(
      'failure',
      became(({ state }) => state === 'down'),
      'down',
    ),
    ...told(
      'slow',
      became(({ state }) => state === 'suspect'),
      'silent',
    ),
    ...told(
      'notice',
      became(({ state }, was) => (state === 'up' || state === 'read-only') && isBack(was)),
      'back',
    ),
    ...told(
      'notice',
      became((_, was) => was === undefined),
      'there',
    ),
    ...told(
      'failure',
      became(({ state }) => state === 'read-only'),
      'read-only',
    ),
    ...levelEvents(change, ({ unavailable }) => unavailable, 'cannot be read', 'all extents can be read again'),
    ...levelEvents(change, ({ underReplicated }) => underReplicated, 'under-replicated', 'all extents are whole again'),
    ...counted('notice', 'replica rebuilt', growth(now.counters.copies, before.counters.copies)),
    ...counted('notice', 'fragment rebuilt', growth(now.counters.rebuilds, before.counters.rebuilds)),
    ...counted(
      'failure',
      'folder refused: an older copy',
      growth(now.counters.refusedDisks, before.counters.refusedDisks),
    ),
  ];
}

function levelEvents(
  { now, before }: Change<Status>,
  level: (extents: Status['extents']) => number,
  bad: string,
  good: string,
): ProgramEvent[] {
  const [is, was] = [level(now.extents), level(before.extents)];
  if (is > 0 && was === 0) return [{ kind: 'failure', text: `${extents(is)} ${bad}` }];
  return is === 0 && was > 0 ? [{ kind: 'notice', text: good }] : [];
}

function saidOf(nodes: readonly Node[], what: string): string | false {
  const numbers = nodes.map(({ node }) => node);
  if (numbers.length === 0) return false;
  if (numbers.length > NODES_TOLD) return `${numbers.length} nodes are ${what}`;
  if (numbers.length === 1) return `node ${numbers[0]} is ${what}`;
  return `nodes ${numbers.slice(0, -1).join(', ')} and ${numbers.at(-1)} are ${what}`;
}

function extents(count: number): string {
  return count === 1 ? '1 extent' : `${count} extents`;
}

function cut<T extends string | null>(text: T): T {
  return (text !== null && text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX - 1)}…` : text) as T;
}
