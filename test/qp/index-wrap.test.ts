/** Rings count their elements without end: through 2^32, a day of small messages. */

import { expect, it } from 'vitest';
import { SimHost } from '../../packages/lab/src/sim/sim-host.js';
import { SeededRandom } from '../../src/core/random.js';
import { recoveryNames } from '../../src/retransmit/recovery-schemes.js';
import type { SendWorkRequest } from '../../src/verbs/send-work-request.js';
import { createPair } from '../support/pair.js';

const LAST_INDICES = -5; // 0xfffffffb

/** Every ring that is attached from here on has had 2^32 - 5 elements. */
function ageRings() {
  let aged = 0;
  const attach = SimHost.prototype.attach;
  SimHost.prototype.attach = function (buffer) {
    const header = new Int32Array(buffer, 0, 16);
    const [producer, consumer, , depth, stride] = header;
    const isRing = producer === 0 && consumer === 0 && depth > 0 && buffer.byteLength === 64 + depth * stride;
    if (isRing) {
      header.fill(LAST_INDICES, 0, 2);
      aged++;
    }
    return attach.call(this, buffer);
  };
  return {
    count: () => aged,
    restore: () => {
      SimHost.prototype.attach = attach;
    },
  };
}

it.each(recoveryNames())('%s: work requests around index 2^32 complete once each, in order', async (recovery) => {
  const rings = ageRings();
  try {
    const pair = await createPair({
      recovery,
      faults: 'random=0.05',
      qp: { maxSendWr: 8, maxRecvWr: 8, maxRecvSge: 1 },
    });
    expect(rings.count()).toBe(8); // Two completion queues, a send and a receive queue on each side.
    const { a, b } = pair;
    const dice = new SeededRandom(1).stream('sizes');
    for (let i = 0; i < 4096; i++) b.mr.bytes[i] = i;
    const remote = { remoteAddr: b.mr.addr, rkey: b.mr.rkey };
    const local = (offset: number, length: number) => ({ sges: [a.mr.sge(offset, length)] });
    const kinds: ReadonlyArray<(wrId: number) => SendWorkRequest> = [
      (wrId) => ({ opcode: 'RDMA_READ', wrId, ...local(8192, 1 + (dice.u32() % 4096)), ...remote }),
      (wrId) => ({ opcode: 'SEND', wrId, ...local(0, 100) }),
      (wrId) => ({
        opcode: 'ATOMIC_FETCH_AND_ADD',
        wrId,
        add: 1n,
        ...local(0, 8),
        ...remote,
        remoteAddr: b.mr.addr + 8192n,
      }),
      (wrId) => ({ opcode: 'RDMA_WRITE', wrId, ...local(0, 3000), ...remote, remoteAddr: b.mr.addr + 20_000n }),
    ];
    for (let n = 0; n < 40; n += 4) {
      b.qp.postRecv({ wrId: n, sges: [b.mr.sge(40_000, 100)] });
      for (let k = 0; k < 4; k++) a.qp.postSend(kinds[k](n + k));
      expect(pair.completions(a.cq, 4).map((wc) => [wc.wrId, wc.status])).toEqual(
        [n, n + 1, n + 2, n + 3].map((wrId) => [wrId, 0]),
      );
      expect(pair.completions(b.recvCq, 1)).toMatchObject([{ wrId: n, status: 0 }]);
    }
    expect(b.mr.bytes.readBigUInt64LE(8192)).toBe(10n);
  } finally {
    rings.restore();
  }
});
