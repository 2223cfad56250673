import type { Connection } from './connection.js';
import type { Listener } from './listener.js';

/** A connection whose `serve` fails is closed; others are not affected. */
export async function serveEach(listener: Listener, serve: (connection: Connection) => Promise<void>): Promise<void> {
  for await (const connection of listener) serve(connection).catch(() => connection.close());
}
