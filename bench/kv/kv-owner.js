// @ts-check
/** The owner of a store of @rocev2/kv as a process. */

import { serveKv } from '../../build/packages/kv/src/index.js';
import { openDevice } from '../../build/src/index.js';
import { block } from './block.js';
import { serve } from './calls.js';
import { keyFor, valueFor } from './values.js';

const ADDRESS = '127.0.0.1';
/** Of the log may be in use. */
const LIVE_SHARE = 0.6;
const RECORD_BYTES = 128;

serve({
  /** Resolves to the TCP port. */
  fill: async ({ keys, valueBytes }) => {
    const device = await openDevice({ address: ADDRESS, udpPort: 0, engine: 'worker' });
    const bytes = Math.max(1 << 20, Math.ceil((keys * (valueBytes + RECORD_BYTES)) / LIVE_SHARE));
    const sizes = { bytes, entries: keys, keyBytesMax: 32, valueBytesMax: valueBytes };
    const store = await serveKv({ device, port: 0, eviction: 'none', ...sizes });
    for (let k = 0; k < keys; k++) await store.set(keyFor(k), valueFor(k, valueBytes));
    return store.port;
  },
  block,
});
