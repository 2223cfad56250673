/**
 * Static flow control under incast (Azure storage paper §4.1): four nodes send to one over a switch with a shallow queue. With chunks, one in
 * flight a connection, the sum of what is under way fits the queue; without, it does not.
 */

import { expect, test } from 'vitest';
import { EventQueue } from '../../../packages/lab/src/sim/event-queue.js';
import { Network } from '../../../packages/lab/src/sim/network.js';
import { quantile } from '../../../packages/lab/src/sim/statistics.js';
import { star } from '../../../packages/lab/src/sim/topology.js';
import { virtualClock } from '../../../packages/lab/src/sim/virtual-clock.js';
import { SeededRandom } from '../../../src/core/random.js';
import { BufferPool } from '../../../src/storage-rpc/pool/buffer-pool.js';
import { SuConnection } from '../../../src/storage-rpc/su/su-connection.js';
import { SU_QP } from '../../../src/storage-rpc/su/su-parts.js';
import { Access } from '../../../src/verbs/access.js';
import { RdmaDevice } from '../../../src/verbs/device.js';
import type { ProtectionDomain } from '../../../src/verbs/protection-domain.js';
import { connectQp } from '../../support/pair.js';
import { until } from '../../support/virtual-time.js';
import { pattern } from '../sk/rig.js';

const SENDERS = 4;
const MESSAGES = 12;
const MIB = 1 << 20;
const LINK = { rateBps: 40e9, delayNs: 1000 };
/** Of 4 KiB: what four chunks of 64 KiB take, and not what four messages do. */
const QUEUE_PACKETS = 80;

interface Outcome {
  readonly p99Ns: number;
  readonly retransmitted: number;
}

async function incast(chunkBytes: number): Promise<Outcome> {
  const events = new EventQueue();
  const network = new Network({
    topology: star(SENDERS + 1, LINK),
    events,
    random: new SeededRandom(1),
    pathMtu: 4096,
    switchConfig: { queuePackets: QUEUE_PACKETS },
  });
  const clock = virtualClock(events);
  const devices = await Promise.all([...network.stations.values()].map(({ host }) => RdmaDevice.over(host)));
  const pds = await Promise.all(devices.map((device) => device.createPd()));
  const pools = pds.map((pd) => {
    const pool = (access: number) => new BufferPool({ allocate: (bytes) => pd.regMr(bytes, access), clock });
    return { local: pool(Access.LOCAL_WRITE), exposed: pool(Access.LOCAL_WRITE | Access.REMOTE_READ) };
  });
  const makeQp = async (pd: ProtectionDomain) => {
    const sendCq = await pd.device.createCq(256);
    const recvCq = await pd.device.createCq(256);
    return { sendCq, recvCq, qp: await pd.createQp({ sendCq, recvCq, ...SU_QP }) };
  };
  const senders: SuConnection[] = [];
  for (let i = 1; i <= SENDERS; i++) {
    const ends = [await makeQp(pds[0]), await makeQp(pds[i])] as const;
    const own = { mtu: 4096, recovery: 'go-back-n', psn: 1 } as const;
    await connectQp(ends[0].qp, { address: devices[i].address, qpn: ends[1].qp.qpn, psn: 1 }, own);
    await connectQp(ends[1].qp, { address: devices[0].address, qpn: ends[0].qp.qpn, psn: 1 }, own);
    const receiver = await SuConnection.over({ pd: pds[0], ...ends[0], clock, pools: pools[0] }, 'server', {
      chunkBytes,
    });
    const sender = await SuConnection.over({ pd: pds[i], ...ends[1], clock, pools: pools[i] }, 'client', {
      chunkBytes,
    });
    receiver.onChunk = ({ release }) => release();
    receiver.start();
    sender.start();
    senders.push(sender);
  }
  await until(events, Promise.all(senders.map(({ ready }) => ready)));
  const times: number[] = [];
  const data = pattern(MIB, 1);
  const send = async (connection: SuConnection) => {
    for (let i = 0; i < MESSAGES; i++) {
      const startNs = events.nowNs;
      await connection.write(data);
      times.push(events.nowNs - startNs);
    }
  };
  await until(events, Promise.all(senders.map(send)));
  const retransmitted = devices.reduce((sum, device) => sum + device.counters().tx_retransmitted, 0);
  return {
    p99Ns: quantile(
      times.sort((a, b) => a - b),
      0.99,
    ),
    retransmitted,
  };
}

test('4 to 1: with chunks of 64 KiB nothing is lost, and the slowest message is faster than with whole ones', async () => {
  const chunked = await incast(64 * 1024);
  const whole = await incast(MIB);
  expect(chunked.retransmitted).toBe(0);
  expect(whole.retransmitted).toBeGreaterThan(0);
  expect(chunked.p99Ns).toBeLessThan(whole.p99Ns);
});
