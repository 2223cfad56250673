// @ts-check
/**
 * What memory that is registered once saves: WRITEs, SENDs and READs of a connection over loopback, eight in flight, from bytes that only this thread reaches
 * (registered for each operation; a NIC in a worker gets a copy), from bytes of `device.allocate` (registered for each operation), and from a region of
 * `connection.register`. The three take turns.
 *
 *   node bench/zero-copy.js [--engine inline|worker] [--reps 5] [--seconds 0.3] [--json]
 */

import { performance } from 'node:perf_hooks';
import process from 'node:process';
import { parseArgs } from 'node:util';
import { connect, listen, openDevice } from '../build/src/index.js';

const SIZES = [64, 4096, 65_536, 1 << 20];
const IN_FLIGHT = 8;

const { values } = parseArgs({
  options: {
    engine: { type: 'string', default: 'inline' },
    reps: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '0.3' },
    json: { type: 'boolean', default: false },
  },
});
const engine = /** @type {'inline' | 'worker'} */ (values.engine);
const reps = Number(values.reps);
const limitMs = Number(values.seconds) * 1000;

const median = (/** @type {number[]} */ list) => [...list].sort((x, y) => x - y)[list.length >> 1];

const address = '127.0.0.1';
const serverDevice = await openDevice({ address, udpPort: 0, engine });
const clientDevice = await openDevice({ address, udpPort: 0, engine });
const listener = await listen(serverDevice, { port: 0, region: SIZES[SIZES.length - 1] });
const [server, client] = await Promise.all([
  listener.accept(),
  connect(clientDevice, { host: address, port: listener.port }),
]);
void (async () => {
  for (;;) (await server.receive({ view: true })).release();
})().catch(() => {}); // The end of the connection.

/** @type {Record<string, (memory: import('../build/src/index.js').Memory) => Promise<unknown>>} */
const OPERATIONS = {
  send: (memory) => client.send(memory),
  write: (memory) => client.write(memory),
  read: (memory) => client.read(memory),
};

/** Microseconds of time and of processor time, all threads, for one operation. */
async function measure(/** @type {() => Promise<unknown>} */ run) {
  const cpu = process.cpuUsage();
  const startMs = performance.now();
  let done = 0;
  const lane = async () => {
    while (performance.now() - startMs < limitMs) {
      await run();
      done++;
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, lane));
  const { user, system } = process.cpuUsage(cpu);
  return { us: ((performance.now() - startMs) * 1000) / done, cpuUs: (user + system) / done };
}

const rows = [];
for (const size of SIZES) {
  const region = await client.register(size);
  const memories = { private: Buffer.alloc(size), allocated: clientDevice.allocate(size), registered: region };
  for (const [operation, run] of Object.entries(OPERATIONS)) {
    if (operation === 'send' && size > (client.agreement.messageBytesMax ?? Infinity)) continue;
    /** @type {Record<string, Array<{us: number, cpuUs: number}>>} */
    const results = { private: [], allocated: [], registered: [] };
    for (let rep = -1; rep < reps; rep++) {
      for (const [name, memory] of Object.entries(memories)) {
        const result = await measure(() => run(memory));
        if (rep >= 0) results[name].push(result); // The first turn warms the code.
      }
    }
    const of = (/** @type {string} */ name, /** @type {'us' | 'cpuUs'} */ unit) =>
      median(results[name].map((result) => result[unit]));
    rows.push({
      operation,
      size,
      ...Object.fromEntries(
        Object.keys(memories).map((name) => [name, { us: of(name, 'us'), cpuUs: of(name, 'cpuUs') }]),
      ),
    });
  }
  await region.close();
}
await clientDevice.close();
await serverDevice.close();

if (values.json) console.log(JSON.stringify({ node: process.version, engine, reps, rows }));
else {
  console.log(
    `node ${process.version}, ${engine} engine, ${IN_FLIGHT} in flight: us an operation (us of processor time, both ends), medians of ${reps}`,
  );
  for (const { operation, size, ...memories } of /** @type {any[]} */ (rows)) {
    const cell = (/** @type {string} */ name) =>
      `${name} ${memories[name].us.toFixed(1)} (${memories[name].cpuUs.toFixed(1)})`.padEnd(28);
    console.log(
      `${operation.padEnd(6)}${String(size).padStart(8)} B  ${Object.keys(memories).map(cell).join('')}registered saves ${(
        100 * (1 - memories.registered.us / memories.private.us)
      ).toFixed(0)} % of private`,
    );
  }
}
