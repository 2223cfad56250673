// @ts-check
/** The stores as readers use them: `get` and `set` of Buffers. */

import { createRequire } from 'node:module';

/** @typedef {{get: (key: string) => Promise<Uint8Array | undefined | null>, set: (key: string, value: Buffer) => Promise<unknown>}} Store */

const ADDRESS = '127.0.0.1';
const require = createRequire(import.meta.url);

/** @type {Record<string, (port: number) => Promise<Store & {close: () => void}>>} */
export const STORES = {
  kv: async (port) => {
    const { openDevice } = await import('../../build/src/index.js');
    const { openKv } = await import('../../build/packages/kv/src/index.js');
    const device = await openDevice({ address: ADDRESS, udpPort: 0, io: 'auto' });
    const kv = await openKv({ device, host: ADDRESS, port });
    const close = () => void device.close();
    return { get: (key) => kv.get(key), set: (key, value) => kv.set(key, value), close };
  },
  ioredis: async (port) => {
    const { Redis } = require('ioredis');
    const redis = new Redis({ host: ADDRESS, port, enableAutoPipelining: true, lazyConnect: true });
    await redis.connect();
    const close = () => redis.disconnect();
    return { get: (key) => redis.getBuffer(key), set: (key, value) => redis.set(key, value), close };
  },
  'node-redis': async (port) => {
    const { createClient, RESP_TYPES } = require('redis');
    const client = createClient({ socket: { host: ADDRESS, port } });
    await client.connect();
    const buffers = client.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });
    const close = () => client.destroy();
    return { get: (key) => buffers.get(key), set: (key, value) => client.set(key, value), close };
  },
};

/**
 * A store behind messages. `post` sends one; the result takes those that come.
 * @param {(message: object) => void} post
 * @returns {{store: Store, take: (message: any) => void}}
 */
export function storeBehindMessages(post) {
  /** @type {Map<number, (value: any) => void>} */
  const waiting = new Map();
  let nextId = 0;
  const ask = (/** @type {object} */ message) =>
    new Promise((/** @type {(value: any) => void} */ resolve) => {
      waiting.set(nextId, resolve);
      post({ id: nextId++, ...message });
    });
  return {
    store: { get: (key) => ask({ get: key }), set: (key, value) => ask({ set: key, value }) },
    take: ({ id, value }) => {
      waiting.get(id)?.(value);
      waiting.delete(id);
    },
  };
}
