/** What leads: a stream manager and its repair loop. */

import type { ManagerParts } from './manager-state.js';
import type { ManagerMethods } from './messages.js';
import { RepairLoop } from './repair-loop.js';
import { StreamManager } from './stream-manager.js';

export interface Leader {
  start(): Promise<void>;
  handle<M extends keyof ManagerMethods>(method: M, request: ManagerMethods[M][0]): Promise<ManagerMethods[M][1]>;
  stop(): void;
}

/** A manager with its repair loop. */
export function leaderOf(parts: ManagerParts): Leader {
  const manager = new StreamManager(parts);
  const repairLoop = new RepairLoop(manager);
  let isStopped = false;
  return {
    start: async () => {
      await manager.start();
      if (!isStopped) repairLoop.start();
    },
    handle: (method, request) => manager.handle(method, request),
    stop: () => {
      isStopped = true;
      repairLoop.stop();
    },
  };
}
