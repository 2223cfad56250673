// @ts-check
/** A reader as a process: of @rocev2/kv and of Redis. */

import { setTimeout as delay } from 'node:timers/promises';
import { HEAD_START_MS } from './block.js';
import { serve } from './calls.js';
import { run } from './load.js';
import { STORES } from './stores.js';

/** @type {Map<string, import('./stores.js').Store>} */
const opened = new Map();

serve({
  open: async (ports) => {
    for (const [kind, port] of Object.entries(ports)) opened.set(kind, await STORES[kind](port));
  },
  run: async (parameters) => {
    await delay(HEAD_START_MS);
    const store = opened.get(parameters.kind);
    if (store === undefined) throw new Error(`${parameters.kind} is not open`);
    return run(store, parameters);
  },
});
