/** Promises in virtual time: they run between events, until none can continue without time passing. */

import type { EventQueue } from './event-queue.js';

interface Port {
  onmessage: () => void;
  postMessage(message: undefined): void;
}

/** Of Node.js; browsers have none. */
const { setImmediate: soon } = globalThis as { setImmediate?: (action: () => void) => void };
let channel: Record<'port1' | 'port2', Port> | undefined;

/** Resolves in the next turn of the event loop, when all promises that could continue have done so. */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    if (soon !== undefined) {
      soon(resolve);
      return;
    }
    channel ??= new MessageChannel() as unknown as Record<'port1' | 'port2', Port>;
    channel.port1.onmessage = resolve;
    channel.port2.postMessage(undefined);
  });
}

/**
 * Runs events, and promises between them, until `outcome` has settled, until nothing is left to happen (`idle`), or
 * until `eventsMax` events have happened (`limit`). Never rejects.
 */
export async function runUntilSettled(
  events: EventQueue,
  outcome: Promise<unknown>,
  eventsMax: number,
): Promise<'settled' | 'idle' | 'limit'> {
  let hasSettled = false;
  const mark = () => {
    hasSettled = true;
  };
  outcome.then(mark, mark);
  for (let count = 0; ; count++) {
    await nextTurn();
    if (hasSettled) return 'settled';
    if (count >= eventsMax) return 'limit';
    if (!events.step()) return 'idle';
  }
}
