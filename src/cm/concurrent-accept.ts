/**
 * Connections of a listener that are set up concurrently, each on what was made for it alone: a request whose peer never answers, as a forged
 * one, holds up nobody. How many are half-open at a time is bounded by the connection manager (`CmLimits`).
 */

import { setMaxListeners } from 'node:events';
import type { IpAddress } from '../packet/address.js';
import type { QueuePair } from '../verbs/queue-pair.js';
import type { CmConnection } from './cm-connection.js';
import type { CmListener } from './cm-listener.js';
import type { CmRequest } from './cm-request.js';
import type { CmConnectionOptions } from './qp-parameters.js';

/** What a connection needs on this side. */
export interface SetUpEnd {
  /** In RESET or INIT, with receives posted if there are to be any. */
  readonly qp: QueuePair;
  /** Gives everything back; for an end that has got no connection. */
  close(): Promise<void>;
}

/** How requests are answered. */
export interface ConcurrentAcceptOptions<E extends SetUpEnd> extends CmConnectionOptions {
  /** Makes what one connection needs. */
  readonly makeEnd: () => Promise<E>;
  /** The only address whose requests are accepted; default: any. */
  readonly from?: IpAddress | undefined;
}

/** A connection, and the end that was made for it. */
export interface Established<E extends SetUpEnd> {
  /** As `CmRequest.accept` gives it. */
  readonly connection: CmConnection;
  /** From `makeEnd`. */
  readonly end: E;
}

/**
 * Accepts requests until `count` of them are connections, and returns these in the order in which they came to be. Set-ups that are half-open then
 * are given up, and their peers told. A set-up that fails is left out. Rejects with ERR_ROCE_CLOSED when the listener is closed before, and with the
 * error of `makeEnd` when no set-up is under way that could still become a connection.
 */
export async function acceptConcurrently<E extends SetUpEnd>(
  listener: CmListener,
  count: number,
  { makeEnd, from, ...terms }: ConcurrentAcceptOptions<E>,
): Promise<Array<Established<E>>> {
  const established: Array<Established<E>> = [];
  const halfOpen = new Set<Promise<void>>();
  const enough = new AbortController();
  setMaxListeners(0, enough.signal); // Every set-up that is half-open listens.
  const setUp = async (request: CmRequest, end: E): Promise<void> => {
    try {
      const connection = await request.accept(end.qp, { ...terms, signal: enough.signal });
      if (established.length < count) {
        established.push({ connection, end });
        return;
      }
      void connection.disconnect();
    } catch {
      // The connection manager has counted it, and told its peer.
    }
    await end.close().catch(() => {}); // With its device, which may be closed by now.
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
    enough.abort(); // What is half-open ends by itself; nobody waits for it.
  }
  return established;
}
