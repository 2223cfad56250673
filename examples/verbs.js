/**
 * The same NIC through its verbs: protection domain, region, queue pairs, work requests and completions, as in libibverbs. This is what to
 * use when every microsecond and every copy counts, or to learn how RDMA works underneath.
 *
 *   node examples/verbs.js
 */

import { Access, checkCompletion, openDevice } from 'rocev2';

/** One side: a queue pair, a completion queue, and memory that the peer may touch. */
async function endpoint(address) {
  const device = await openDevice({ address });
  const pd = await device.createPd();
  const cq = await device.createCq(64);
  const qp = await pd.createQp({ sendCq: cq });
  const region = await pd.regMr(4096, Access.REMOTE_ALL);
  return { device, cq, qp, region, psn: Math.floor(Math.random() * 2 ** 24) };
}

/** INIT, RTR, RTS: what rdma_cm or a TCP exchange does for you otherwise. */
async function connectTo(own, peer) {
  await own.qp.modify({ state: 'INIT', pkeyIndex: 0, port: 1, accessFlags: Access.REMOTE_ALL });
  await own.qp.modify({
    state: 'RTR',
    av: { address: peer.device.address },
    pathMtu: 4096,
    destQpn: peer.qp.qpn,
    rqPsn: peer.psn,
    maxDestRdAtomic: 1,
    minRnrTimer: 12,
  });
  await own.qp.modify({ state: 'RTS', sqPsn: own.psn, timeout: 14, retryCnt: 7, rnrRetry: 7, maxRdAtomic: 1 });
}

const a = await endpoint('127.0.0.1');
const b = await endpoint('127.0.0.2');
await connectTo(a, b);
await connectTo(b, a);

// A receive takes the message that the peer's SEND carries.
b.qp.postRecv({ wrId: 1, sges: [b.region.sge(0, 1024)] });
a.region.bytes.write('a message');
a.qp.postSend({ opcode: 'SEND', wrId: 2, sges: [a.region.sge(0, 9)] });
console.log('sender  ', checkCompletion(await a.cq.next()).opcode);
const received = checkCompletion(await b.cq.next());
console.log('receiver', received.opcode, received.byteLen, 'bytes:', b.region.bytes.toString('utf8', 0, 9));

// A WRITE needs the peer's address and key, and nothing from the peer's program.
a.qp.postSend({
  opcode: 'RDMA_WRITE',
  inline: Buffer.from('inline data'),
  remoteAddr: b.region.addr + 2048n,
  rkey: b.region.rkey,
});
checkCompletion(await a.cq.next());
console.log('written ', b.region.bytes.toString('utf8', 2048, 2059));

// A wrong key is refused by the peer's NIC; the queue pair stops, and says why.
a.qp.postSend({ opcode: 'RDMA_READ', sges: [a.region.sge(0, 8)], remoteAddr: b.region.addr, rkey: 0xdeadbeef });
console.log('bad key ', (await a.cq.next()).statusName);

await a.device.close();
await b.device.close();
