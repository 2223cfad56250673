/** The accept loop of servers that serve each connection by itself. */

import type { Connection } from './connection.js';
import type { Listener } from './listener.js';

/** Serves each connection until the listener is closed. One whose `serve` fails is closed, and harms nobody else. */
export async function serveEach(listener: Listener, serve: (connection: Connection) => Promise<void>): Promise<void> {
  for await (const connection of listener) serve(connection).catch(() => connection.close());
}
