/** The honest peers beside an attack: one that is connected and goes on working, and ones that connect meanwhile. */

import type { Connection } from '../../../src/index.js';

/** What a connected honest peer has had of its connection. */
export interface HonestService {
  /** WRITEs that were acknowledged and read back right. */
  verified: number;
  /** The first that went wrong. */
  failure: Error | undefined;
}

/** WRITEs and READs back `bytes` at `offset` of the peer's region, other data each time, until `stop` is called. */
export function goOnWriting(
  connection: Connection,
  { offset = 0, bytes = 4096 }: { offset?: number; bytes?: number } = {},
): HonestService & { stop(): Promise<HonestService> } {
  let going = true;
  const service = { verified: 0, failure: undefined as Error | undefined, stop };
  const done = run().catch((error: Error) => {
    service.failure = error;
  });
  async function run(): Promise<void> {
    const data = connection.device.allocate(bytes);
    for (let round = 1; going; round++) {
      for (let i = 0; i < bytes; i++) data[i] = (i * 7 + round) & 0xff;
      await connection.write(data, offset);
      const back = await connection.read(bytes, offset);
      if (!back.equals(data)) throw new Error(`round ${round}: what was read is not what was written`);
      service.verified++;
    }
  }
  async function stop(): Promise<HonestService> {
    going = false;
    await done;
    return service;
  }
  return service;
}

/** How connecting went for honest peers, one after another. */
export interface ConnectTimes {
  /** Share that got through, 0..1. */
  readonly success: number;
  /** Milliseconds. */
  readonly p50: number;
  readonly p99: number;
  readonly failures: readonly Error[];
}

/** Times `count` calls of `connect`, one after another. */
export async function timeConnects(count: number, connect: (turn: number) => Promise<unknown>): Promise<ConnectTimes> {
  const times: number[] = [];
  const failures: Error[] = [];
  for (let turn = 0; turn < count; turn++) {
    const start = performance.now();
    await connect(turn).then(
      () => times.push(performance.now() - start),
      (error) => failures.push(error),
    );
  }
  times.sort((a, b) => a - b);
  const at = (share: number) => times[Math.min(times.length - 1, Math.ceil(share * times.length) - 1)] ?? Number.NaN;
  return { success: times.length / count, p50: at(0.5), p99: at(0.99), failures };
}
