/**
 * The other side of perftest's ib_write_bw and ib_read_bw, for the interop suite: `node perftest-peer.js client|server write|read ADDRESS
 * [HOST] SIZE ITERATIONS`. One QP, every message one after another; prints what it learned and what its memory holds as JSON.
 */

import { dialFixed } from '../../../build/src/cm/fixed-channel.js';
import { FixedListener } from '../../../build/src/cm/fixed-listener.js';
import { PERFTEST_TCP_PORT, PERFTEST_TOOLS, PerftestExchange } from '../../../build/src/cm/perftest-exchange.js';
import { tcpWire } from '../../../build/src/cm/perftest-wire.js';
import { Access } from '../../../build/src/verbs/access.js';
import { checkCompletion } from '../../../build/src/verbs/completion-queue.js';
import { openDevice } from '../../../build/src/verbs/open-device.js';

const FILL = 0xa5;
const [role, op, address, host, size, iterations] = process.argv
  .slice(2)
  .map((arg) => (/^\d+$/.test(arg) ? Number(arg) : arg));

const device = await openDevice({ address });
const cq = await device.createCq(256);
const pd = await device.createPd();
const qp = await pd.createQp({ sendCq: cq });

const channel = role === 'client' ? await dialFixed(host, PERFTEST_TCP_PORT) : await acceptOne();
const exchange = await PerftestExchange.open(tcpWire(channel), role, { pathMtu: device.attributes.pathMtuMax });
const memory = await pd.regMr(2 * Math.max(size, exchange.cycleBufferBytes), Access.REMOTE_ALL);
memory.bytes.fill(FILL);

const outstandingReads = op === 'read' ? 16 : 1;
const own = {
  outstandingReads,
  qpn: qp.qpn,
  psn: 0x123456,
  rkey: memory.rkey,
  remoteAddr: memory.addr,
  address: device.address,
};
const peer = await exchange.exchangeKeys(own);
await qp.modify({ state: 'INIT', pkeyIndex: 0, port: 1, accessFlags: Access.REMOTE_ALL });
await qp.modify({
  state: 'RTR',
  av: { address: peer.address },
  pathMtu: exchange.pathMtu,
  destQpn: peer.qpn,
  rqPsn: peer.psn,
  maxDestRdAtomic: outstandingReads,
  minRnrTimer: 12,
});
const maxRdAtomic = Math.min(outstandingReads, peer.outstandingReads);
await qp.modify({ state: 'RTS', sqPsn: own.psn, timeout: 14, retryCnt: 7, rnrRetry: 7, maxRdAtomic });

const tool = PERFTEST_TOOLS[`${op}_bw`];
for (let i = 0; i < 1 + tool.barriers; i++) await exchange.barrier();
const started = performance.now();
if (role === 'client') {
  const request = {
    opcode: op === 'read' ? 'RDMA_READ' : 'RDMA_WRITE',
    sges: [memory.sge(0, size)],
    remoteAddr: peer.remoteAddr,
    rkey: peer.rkey,
  };
  let posted = 0;
  for (let done = 0; done < iterations; done++) {
    while (posted < iterations && posted - done < 16) {
      qp.postSend(request);
      posted++;
    }
    checkCompletion(await cq.next());
  }
}
const seconds = (performance.now() - started) / 1000;
await exchange.barrier(60_000);
const mebibytes = (size * iterations) / 2 ** 20 / seconds;
const report = await exchange.exchangeReport({
  sizeBytes: BigInt(size),
  iterations: BigInt(iterations),
  peak: mebibytes,
  average: mebibytes,
  messageRate: iterations / seconds / 1e6,
});
await exchange.finish();
const touched = memory.bytes.subarray(0, size).filter((byte) => byte !== FILL).length;
const { peerVersion, pathMtu, cycleBufferBytes } = exchange;
const terms = { peerVersion, pathMtu, cycleBufferBytes };
const text = (value) => (typeof value === 'bigint' ? Number(value) : value);
process.stdout.write(`${JSON.stringify({ ...terms, touched, report }, (_, value) => text(value))}\n`);
await device.close();

async function acceptOne() {
  const listener = await FixedListener.open(PERFTEST_TCP_PORT);
  process.stderr.write('listening\n');
  const accepted = await listener.accept();
  listener.close();
  return accepted;
}
