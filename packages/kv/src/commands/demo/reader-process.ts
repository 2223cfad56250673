/** A reader of the demonstration as a process, so that no reader delays another. */

import { method, serveParent } from '@rocev2/command';
import { openDevice } from 'rocev2/internal/verbs';
import { z } from 'zod';
import { openKv } from '../../index.js';
import { PacedGets } from './paced-gets.js';
import { RespClient } from './resp.js';
import { KEYS, keyFor, valueFor } from './values.js';

const ADDRESS = '127.0.0.1';
let gets: PacedGets | undefined;

async function kvReader(port: number): Promise<(key: number) => Promise<string>> {
  const device = await openDevice({ address: ADDRESS, udpPort: 0 });
  const kv = await openKv<string>({ device, host: ADDRESS, port, codec: 'string' });
  return async (key) => (await kv.get(keyFor(key))) ?? '';
}

async function respReader(port: number, mustFill: boolean): Promise<(key: number) => Promise<string>> {
  const client = await RespClient.open(port);
  if (mustFill) for (let key = 0; key < KEYS; key++) await client.command('SET', keyFor(key), valueFor(key));
  return (key) => client.command('GET', keyFor(key));
}

const service = {
  /** Connects, and asks once, so that nothing is loaded or compiled later. */
  open: method(
    { kind: z.enum(['kv', 'net', 'redis']), port: z.number(), perSecond: z.number() },
    async ({ kind, port, perSecond }) => {
      const get = await (kind === 'kv' ? kvReader(port) : respReader(port, kind === 'redis'));
      for (let key = 0; key < KEYS; key++) await get(key);
      gets = new PacedGets(get, perSecond, KEYS);
    },
  ),
  start: method({}, () => gets!.start()),
  /** The longest GET of late. */
  worstNs: method({ sinceNs: z.number() }, ({ sinceNs }) => gets!.worstNs(sinceNs)),
  end: method({}, () => gets!.end()),
};

/** The calls that the process answers. */
export type DemoReaderService = typeof service;

serveParent(service);
