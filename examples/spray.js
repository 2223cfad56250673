/**
 * One stream over eight paths, with nothing that a stock RDMA NIC does not speak: eight standard queue pairs (RC, go-back-N), each with a UDP source port of its
 * own, which is what switches with ECMP choose a path by. The number of a piece travels as immediate data.
 *
 *   node examples/spray.js
 *
 * A piece is an RDMA WRITE into a ring of the receiver, at the place of its number, so it may arrive before those ahead of it. The receiver reads the ring in order and
 * gives places back by small SENDs. Each next piece takes the path that has the fewest under way: a path that is slow or loses gets fewer, and nobody measures anything.
 * Here one of the paths is longer by 30 ms.
 */

import { createHash, randomBytes } from 'node:crypto';
import { Access, checkCompletion, openDevice } from 'rocev2';

const PATHS = 8;
const SLOW = 3;
const PIECE = 16 * 1024;
const RING = 64;
const UNDER_WAY_MAX = 8;
const stream = randomBytes(400 * PIECE);

/** The first PSN of a path; only so that a fault rule can name the packets of one. */
const firstPsn = (path) => path * 0x10_0000;
const slowPath = `host>wire:psn=${firstPsn(SLOW)}-${firstPsn(SLOW + 1) - 1},delay=30ms`;

/** One side: a queue pair for each path, all on one completion queue. */
async function endpoint(address, bytes, loss) {
  const device = await openDevice({ address, ...(loss !== undefined && { loss }) });
  const pd = await device.createPd();
  const cq = await device.createCq(1024);
  const srq = await pd.createSrq({ depth: 2 * RING });
  const region = await pd.regMr(bytes, Access.REMOTE_ALL);
  const qps = [];
  for (let path = 0; path < PATHS; path++) qps.push(await pd.createQp({ sendCq: cq, srq, maxSendWr: RING }));
  return { device, cq, srq, region, qps };
}

/** What set-up by rdma_cm would do for each path. */
async function connect(own, peer) {
  for (const [path, qp] of own.qps.entries()) {
    await qp.modify({ state: 'INIT', pkeyIndex: 0, port: 1, accessFlags: Access.REMOTE_ALL });
    await qp.modify({
      state: 'RTR',
      av: { address: peer.device.address },
      pathMtu: 1024,
      destQpn: peer.qps[path].qpn,
      rqPsn: firstPsn(path),
      maxDestRdAtomic: 1,
      minRnrTimer: 1,
    });
    await qp.modify({ state: 'RTS', sqPsn: firstPsn(path), timeout: 16, retryCnt: 7, rnrRetry: 7, maxRdAtomic: 1 });
  }
}

/** Sends the stream, and tells how many pieces each path took. */
async function send({ cq, srq, region, qps }, peer) {
  const pathOf = new Map(qps.map((qp, path) => [qp.qpn, path]));
  const underWay = new Array(PATHS).fill(0);
  const taken = new Array(PATHS).fill(0);
  stream.copy(region.bytes);
  const pieces = stream.length / PIECE;
  let next = 0;
  let limit = RING; // Pieces before this one have a place in the ring.
  let done = 0;
  while (done < pieces) {
    while (next < Math.min(limit, pieces)) {
      const path = underWay.indexOf(Math.min(...underWay));
      if (underWay[path] === UNDER_WAY_MAX) break;
      qps[path].postSend({
        opcode: 'RDMA_WRITE_WITH_IMM',
        sges: [region.sge(next * PIECE, PIECE)],
        remoteAddr: peer.region.addr + BigInt((next % RING) * PIECE),
        rkey: peer.region.rkey,
        immediate: next,
      });
      underWay[path]++;
      taken[path]++;
      next++;
    }
    const completion = checkCompletion(await cq.next());
    if (completion.opcode === 'RECV') {
      limit = Math.max(limit, completion.immediate + RING);
      srq.postRecv({ sges: [] });
    } else {
      underWay[pathOf.get(completion.qpn)]--;
      done++;
    }
  }
  return taken;
}

/** Reads the stream in order: its digest, and how many pieces came before one ahead of them. */
async function receive({ cq, srq, region, qps }) {
  const hash = createHash('sha256');
  const here = new Set();
  const pieces = stream.length / PIECE;
  let read = 0;
  let early = 0;
  while (read < pieces) {
    const { opcode, immediate } = checkCompletion(await cq.next());
    if (opcode !== 'RECV_RDMA_WITH_IMM') continue; // A report that has been sent.
    srq.postRecv({ sges: [] });
    here.add(immediate);
    if (immediate !== read) early++;
    const before = read;
    for (; here.delete(read); read++) {
      const place = (read % RING) * PIECE;
      hash.update(region.bytes.subarray(place, place + PIECE));
    }
    if (read > before) qps[0].postSend({ opcode: 'SEND_WITH_IMM', sges: [], immediate: read });
  }
  return { digest: hash.digest('hex'), early };
}

const sender = await endpoint('127.0.0.1', stream.length, slowPath);
const receiver = await endpoint('127.0.0.2', RING * PIECE);
await connect(sender, receiver);
await connect(receiver, sender);
for (const { srq } of [sender, receiver]) for (let i = 0; i < 2 * RING; i++) srq.postRecv({ sges: [] });

const [taken, { digest, early }] = await Promise.all([send(sender, receiver), receive(receiver)]);
const isSame = digest === createHash('sha256').update(stream).digest('hex');
console.log(`${stream.length} bytes over ${PATHS} paths, in order: ${isSame}`);
console.log(`pieces came before others ahead of them: ${early > 0}`);
console.log(`the slow path took fewer than any other: ${taken.every((n, path) => path === SLOW || n > taken[SLOW])}`);

await sender.device.close();
await receiver.device.close();
