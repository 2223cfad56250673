/**
 * Sets up connections of a listener concurrently, each with its own resources: a request whose peer never answers, such
 * as a forged one, delays no other. How many are half-open at a time is bounded by the connection manager (`CmLimits`).
 */

import { setMaxListeners } from 'node:events';
import type { IpAddress } from '../packet/address.js';
import type { QueuePair } from '../verbs/queue-pair.js';
import type { CmConnection } from './cm-connection.js';
import type { CmListener } from './cm-listener.js';
import type { CmRequest } from './cm-request.js';
import type { CmConnectionOptions } from './qp-parameters.js';

export interface SetUpEnd {
  readonly qp: QueuePair;
  close(): Promise<void>;
}

export interface ConcurrentAcceptOptions<E extends SetUpEnd> extends CmConnectionOptions {
  readonly makeEnd: () => Promise<E>;
  readonly from?: IpAddress | undefined;
}

export interface Established<E extends SetUpEnd> {
  readonly connection: CmConnection;
  readonly end: E;
}

/**
 * Set-ups that are half-open then are given up, and their peers notified. A set-up that fails is left out. Rejects with
 * ERR_ROCE_CLOSED when the listener is closed before, and with the error of `makeEnd` when no set-up is in progress
 * that could still become a connection.
 */
export async function acceptConcurrently<E extends SetUpEnd>(
  listener: CmListener,
  count: number,
  { makeEnd, from, ...terms }: ConcurrentAcceptOptions<E>,
): Promise<Array<Established<E>>> {
  const established: Array<Established<E>> = [];
  const halfOpen = new Set<Promise<void>>();
  const enough = new AbortController();
  setMaxListeners(0, enough.signal);
  const setUp = async (request: CmRequest, end: E): Promise<void> => {
    try {
      const connection = await request.accept(end.qp, { ...terms, signal: enough.signal });
      if (established.length < count) {
        established.push({ connection, end });
        return;
      }
      void connection.disconnect();
    } catch {}
    await end.close().catch(() => {});
  };
  const takeRequests = async (): Promise<void> => {
    while (established.length < count) {
      const request = await listener.next({ signal: enough.signal });
      if (from !== undefined && !request.remote.equals(from)) {
        request.reject();
        continue;
      }
      const end = await makeEnd().catch((error) => {
        request.reject();
        if (halfOpen.size === 0) throw error;
      });
      if (end === undefined) continue;
      const attempt = setUp(request, end).finally(() => {
        halfOpen.delete(attempt);
        if (established.length === count) enough.abort();
      });
      halfOpen.add(attempt);
    }
  };
  try {
    await takeRequests();
  } catch (error) {
    if (!enough.signal.aborted) throw error;
  } finally {
    enough.abort();
  }
  return established;
}
