import type { ClusterDocument } from '@rocev2/command';
import type { Command } from 'commander';
import { type Clock, NS_PER_MS, NS_PER_S } from 'rocev2/internal/core';
import { SYSTEM_CLOCK, wallMs } from 'rocev2/internal/driver';
import { serveDocument } from 'rocev2/internal/estats';
import type { ClusterStatus, ManagerServer } from '../index.js';
import { MANAGER_TIMING } from '../live/timing.js';
import { isNotLeader, leaderIn } from '../not-leader.js';

const SUSPECT_MS = MANAGER_TIMING.downMs / 2;
/** The dashboard waits two seconds; a store that does not answer must not make the manager look dead. */
const TIMEOUT_MS = 1000;
const RECENT_MS = 10_000;

type WatchedStatus = NonNullable<ClusterDocument['status']>;
type State = Pick<ClusterDocument, 'leader' | 'status' | 'trouble'>;

export type WatchedManager = Pick<ManagerServer, 'address' | 'status' | 'clusterName'>;

export function addTelemetryOption(command: Command, what: string): Command {
  return command.option(
    '--estats',
    `publish ${what} for 'rocev2 dashboard --attach' (packages/dashboard/docs/dashboard.md)`,
  );
}

export async function serveClusterDocument(manager: WatchedManager, isWanted: boolean): Promise<AsyncDisposable> {
  if (!isWanted) return { [Symbol.asyncDispose]: async () => {} };
  const server = await serveDocument(clusterDocuments(manager));
  return { [Symbol.asyncDispose]: () => server.close() };
}

export function clusterDocuments(manager: WatchedManager, clock: Clock = SYSTEM_CLOCK): () => Promise<ClusterDocument> {
  const startNs = clock.nowNs();
  let cluster: string | undefined;
  let looking: Promise<State> | undefined;
  let last: { readonly state: State; readonly atNs: number } | undefined;
  const look = () => {
    looking ??= stateOf(manager).then((state) => {
      last = { state, atNs: clock.nowNs() };
      looking = undefined;
      return state;
    });
    return looking;
  };
  const recent = () =>
    last !== undefined && clock.nowNs() - last.atNs <= RECENT_MS * NS_PER_MS ? last.state : undefined;
  const silent: State = { leader: manager.address, status: null, trouble: 'its metadata does not answer' };
  return async () => {
    const state = (await inTime<State | undefined>(look(), undefined, clock)) ?? recent() ?? silent;
    cluster ??= await inTime(
      manager.clusterName().catch(() => undefined),
      undefined,
      clock,
    );
    return {
      kind: 'cluster',
      version: 1,
      pid: process.pid,
      address: manager.address,
      time: new Date(wallMs()).toISOString(),
      uptimeSeconds: (clock.nowNs() - startNs) / NS_PER_S,
      cluster: cluster ?? null,
      ...state,
    };
  };
}

async function stateOf(manager: WatchedManager): Promise<State> {
  try {
    return { leader: manager.address, status: watched(await manager.status()), trouble: null };
  } catch (error) {
    if (isNotLeader(error)) return { leader: leaderIn(error) ?? null, status: null, trouble: null };
    return { leader: manager.address, status: null, trouble: (error as Error).message };
  }
}

function watched({ managers, nodes, streams, extents, counters }: ClusterStatus): WatchedStatus {
  return {
    managers: [...managers],
    nodes: nodes.map((node) => ({ ...node, state: stateWithSilence(node), readOnly: node.readOnly ?? null })),
    streams: streams.map((stream) => ({ ...stream, owner: stream.owner ?? null })),
    extents,
    counters,
  };
}

function stateWithSilence({
  state,
  silentMs,
}: ClusterStatus['nodes'][number]): WatchedStatus['nodes'][number]['state'] {
  return state !== 'down' && silentMs >= SUSPECT_MS ? 'suspect' : state;
}

async function inTime<T>(value: Promise<T>, otherwise: T, clock: Clock): Promise<T> {
  let cancel = () => {};
  const late = new Promise<T>((resolve) => {
    cancel = clock.wakeAt(clock.nowNs() + TIMEOUT_MS * NS_PER_MS, () => resolve(otherwise));
  });
  try {
    return await Promise.race([value, late]);
  } finally {
    cancel();
  }
}
