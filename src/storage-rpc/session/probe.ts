import { RoceError } from '../../core/errors.js';
import type { SkClientChannel } from '../sk/channel.js';
import { ClientSession } from '../sk/client-session.js';
import type { ClientSessionOptions } from '../sk/client-session-options.js';

const READS_EACH = 16;
const GRACEFUL_CLOSE_NS = 1e9;
const SIZES_BYTES = [4096, 65_536] as const;

export async function probe(channel: SkClientChannel, terms: ClientSessionOptions): Promise<number> {
  const { clock } = terms;
  const session = new ClientSession(terms);
  let fail: (error: Error) => void = () => {};
  const failed = new Promise<never>((_, reject) => {
    fail = reject;
  });
  failed.catch(() => {});
  session.onLost = (_, error) => fail(error);
  try {
    await session.resume(channel);
    let slowestNs = 0;
    for (const size of SIZES_BYTES) {
      const length = Math.min(size, session.server!.disk.sizeBytes);
      for (let i = 0; i < READS_EACH; i++) {
        const startNs = clock.nowNs();
        await Promise.race([session.submit({ op: 'READ', offset: 0, length }), failed]);
        slowestNs = Math.max(slowestNs, clock.nowNs() - startNs);
      }
    }
    if (session.counters.crcMismatches > 0) throw new RoceError('ERR_ROCE_CONNECT', 'the path changes data');
    return slowestNs;
  } finally {
    await session.closeGracefully(GRACEFUL_CLOSE_NS);
    await session.end(new RoceError('ERR_ROCE_CLOSED', 'the probe is over'));
    await channel.close();
  }
}
