/** Failover after failover under I/O, in both directions, with every write accounted for. */

import { expect } from 'vitest';
import { MemoryDevice } from '../../../src/storage-rpc/disk/memory-device.js';
import { DISK_BYTES, pattern, Rig, readIo, writeIo } from '../sk/rig.js';

/** A disk that knows how often each write has been executed. */
export class CountingDisk extends MemoryDevice {
  readonly executed = new Map<number, number>();

  override async write(offset: number, data: Uint8Array): Promise<void> {
    this.executed.set(offset, (this.executed.get(offset) ?? 0) + 1);
    await super.write(offset, data);
  }
}

/** `count` times: RDMA breaks, I/O goes on over TCP, and is moved back. */
export async function checkFailovers(
  count: number,
): Promise<{ writes: number; pauseP50Ns: number; pauseP99Ns: number }> {
  const disk = new CountingDisk(DISK_BYTES);
  const rig = await Rig.create({ disk });
  const host = rig.host({ path: { holdDownNs: 1e12 } });
  const reconnector = await rig.until(host.open());
  const { session } = reconnector;
  const written = new Map<number, Buffer>();
  let writes = 0;
  let running = true;
  const worker = async (n: number) => {
    for (let i = 0; running; i++) {
      const offset = (n * 64 + (i % 64)) * 8192;
      const data = pattern(i % 3 === 0 ? 8192 : 512, n + i);
      await session.submit(writeIo(offset, data));
      written.set(offset, data);
      writes++;
    }
  };
  const workers = Array.from({ length: 8 }, (_, n) => worker(n));
  for (let i = 0; i < count; i++) {
    await rig.pass(30_000 + (i % 17) * 3_000);
    session.breakConnection('to TCP');
    while (session.transport !== 'tcp') await rig.pass(20_000);
    await rig.pass(30_000 + (i % 13) * 3_000);
    expect(await rig.until(reconnector.moveTo('rdma'))).toBe(true);
  }
  running = false;
  await rig.until(Promise.all(workers));
  expect([...disk.executed.values()].reduce((a, b) => a + b, 0)).toBe(writes);
  for (const [offset, data] of written) {
    const into = Buffer.alloc(data.length);
    await rig.until(session.submit(readIo(offset, into)));
    expect(into.equals(data)).toBe(true);
  }
  const pauses = reconnector.pausesNs.toSorted((a, b) => a - b);
  expect(pauses).toHaveLength(count);
  expect(pauses[Math.floor(0.99 * count)]).toBeLessThan(1e6);
  return { writes, pauseP50Ns: pauses[count >> 1], pauseP99Ns: pauses[Math.floor(0.99 * count)] };
}
