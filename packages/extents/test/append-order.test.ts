/**
 * Who sends a record to the second secondary: the primary, as it is done, or the first secondary, which makes a chain of them. The same nodes on the same simulated NICs do both, in virtual time.
 * `ORDER_FIGURES=1 npx vitest run packages/extents/test/append-order` prints the table of docs/extents.md, in a minute or two.
 */

import process from 'node:process';
import { expect, it } from 'vitest';
import { quantile } from '../../lab/src/sim/statistics.js';
import { PacketCluster } from './pictures/packet-cluster.js';

const DEPTH = 8;
const WARM_UPS = 1;
const ORDERS = { parallel: false, chain: true };

interface Load {
  readonly bytes: number;
  /** One at a time. */
  readonly appends: number;
  /** Then so many, eight under way. */
  readonly together: number;
}

async function measured(order: keyof typeof ORDERS, { bytes, appends, together }: Load) {
  const cluster = await PacketCluster.unwatched({ isChain: ORDERS[order], callMs: 200, extentBytes: 64 << 20 });
  const writer = await cluster.until(cluster.writer('log'));
  const append = () => writer.append(Buffer.alloc(bytes, 1));
  for (let k = 0; k < WARM_UPS; k++) await cluster.until(append()); // The stream has an extent, and all have connections.
  const hosts = writer.extent!.replicas.map(({ address }) => address);
  const before = hosts.map((host) => cluster.sentBytes(host));
  const ms: number[] = [];
  for (let k = 0; k < appends; k++) {
    const startNs = cluster.nowNs;
    await cluster.until(append());
    ms.push((cluster.nowNs - startNs) / 1e6);
  }
  const sent = hosts.map((host, k) => (cluster.sentBytes(host) - before[k]) / (appends * bytes));
  let left = together;
  const lane = async () => {
    while (left-- > 0) await append();
  };
  const startNs = cluster.nowNs;
  await cluster.until(Promise.all(Array.from({ length: DEPTH }, lane)));
  const togetherNs = cluster.nowNs - startNs;
  expect(writer.counters).toMatchObject({ appends: WARM_UPS + appends + together, failovers: 0 });
  ms.sort((a, b) => a - b);
  return { p50: quantile(ms, 0.5), p99: quantile(ms, 0.99), sent, mbPerS: (together * bytes * 1e3) / togetherNs };
}

it.each([
  ['4 KiB', { bytes: 4096, appends: 8, together: 0 }],
  ['1 MiB', { bytes: 1 << 20, appends: 1, together: 0 }],
])('a primary that sends %s to both is sooner done than a chain, and sends twice as much', async (_, load) => {
  const parallel = await measured('parallel', load);
  const chain = await measured('chain', load);
  expect(parallel.p50).toBeLessThan(chain.p50);
  expect(Math.floor(parallel.sent[0])).toBe(2);
  expect(chain.sent.map(Math.floor)).toEqual([1, 1, 0]);
});

it.runIf(process.env['ORDER_FIGURES'])('figures', { timeout: 600_000 }, async () => {
  const rows = [];
  for (const bytes of [4096, 1 << 20]) {
    const load = bytes === 4096 ? { bytes, appends: 200, together: 200 } : { bytes, appends: 24, together: 24 };
    for (const order of ['parallel', 'chain'] as const) {
      const { p50, p99, sent, mbPerS } = await measured(order, load);
      const port = sent.map((perByte) => perByte.toFixed(2)).join(' / ');
      rows.push({ bytes, order, p50: p50.toFixed(3), p99: p99.toFixed(3), 'MB/s': mbPerS.toFixed(0), port });
    }
  }
  console.table(rows);
});
