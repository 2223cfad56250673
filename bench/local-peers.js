// @ts-check
/**
 * Memory of a device with many local peers: its mappings that are shared with them, by kind, and the resident memory of its process. Every peer is a device of
 * a second process, with one connection and one mapped region.
 *
 *   node bench/local-peers.js [--peers 32] [--engine inline|worker] [--json]
 */

import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { connect, listen, openDevice } from '../build/src/index.js';

const SELF = fileURLToPath(import.meta.url);
const [OWNER, PEER] = ['127.54.6.1', '127.54.6.2'];
const REGION_BYTES = 65_536;
const KIB = 1024;
const MIB = KIB * KIB;

const { values } = parseArgs({
  options: {
    peers: { type: 'string', default: '32' },
    engine: { type: 'string', default: 'inline' },
    json: { type: 'boolean', default: false },
    role: { type: 'string', default: 'owner' },
    port: { type: 'string', default: '0' },
  },
});
const peers = Number(values.peers);
const engine = /** @type {'inline' | 'worker'} */ (values.engine);

/** Mappings of this process that other processes can have as well, in MiB: their size, and what is resident of them. */
function sharedMappings() {
  /** @type {Record<string, {mappings: number, mapped: number, resident: number}>} */
  const kinds = {};
  for (const text of readFileSync('/proc/self/smaps', 'utf8').split(/\n(?=[\da-f]+-[\da-f]+ )/)) {
    const kind = /memfd:rocev2-([a-z]+)/.exec(text)?.[1];
    if (kind === undefined) continue;
    const mib = (/** @type {string} */ field) =>
      Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(text)?.[1]) / KIB;
    kinds[kind] ??= { mappings: 0, mapped: 0, resident: 0 };
    kinds[kind].mappings++;
    kinds[kind].mapped += mib('Size');
    kinds[kind].resident += mib('Rss');
  }
  return kinds;
}

async function owner() {
  const device = await openDevice({ address: OWNER, udpPort: 0, io: 'auto', engine });
  const region = device.allocate(REGION_BYTES);
  const limits = { maxConnections: peers, maxConnectionsPerAddress: peers };
  const listener = await listen(device, { host: OWNER, port: 0, region, ...limits });
  const child = fork(SELF, ['--role', 'peers', '--peers', values.peers, '--port', String(listener.port)]);
  try {
    const ended = once(child, 'exit').then(() => {
      throw new Error('the process of the peers has ended');
    });
    const told = once(child, 'message');
    const accepted = [];
    for (let i = 0; i < peers; i++) accepted.push(await Promise.race([listener.accept(), ended]));
    const [{ mapped, refused }] = await Promise.race([told, ended]);
    const result = { peers, mapped, refused, shared: sharedMappings(), resident: process.memoryUsage.rss() / MIB };
    if (values.json) console.log(JSON.stringify(result));
    else print(result);
  } finally {
    child.kill();
    await device.close();
  }
}

/** @param {{peers: number, mapped: number, refused: number, shared: ReturnType<typeof sharedMappings>, resident: number}} result */
function print({ peers, mapped, refused, shared, resident }) {
  console.log(`${peers} local peers; ${mapped} have mapped the region, ${refused} use packets alone; MiB`);
  for (const [kind, { mappings, mapped, resident }] of Object.entries(shared))
    console.log(
      `${kind.padEnd(10)} ${mappings} mappings, ${mapped.toFixed(1)} mapped, ${resident.toFixed(1)} resident`,
    );
  const total = Object.values(shared).reduce((sum, { mapped }) => sum + mapped, 0);
  console.log(`all        ${total.toFixed(1)} mapped; the process has ${resident.toFixed(1)} resident`);
}

async function peersOf(/** @type {number} */ port) {
  const connections = [];
  for (let i = 0; i < peers; i++) {
    const device = await openDevice({ address: PEER, udpPort: 0, io: 'auto' });
    const connection = await connect(device, { host: OWNER, port });
    await connection.write(Buffer.alloc(64, i), 0);
    connections.push(connection);
  }
  const mapped = connections.filter(({ agreement }) => agreement.mapsRegion).length;
  process.send?.({ mapped, refused: connections.length - mapped });
  await once(process, 'disconnect');
}

await (values.role === 'peers' ? peersOf(Number(values.port)) : owner());
