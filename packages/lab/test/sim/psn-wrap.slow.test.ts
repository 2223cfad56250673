import { describe, expect, it } from 'vitest';
import { recoveryNames } from '../../../../src/retransmit/recovery-schemes.js';
import type { SendWorkRequest } from '../../../../src/verbs/send-work-request.js';
import { createPair, type Player } from '../../../../test/support/pair.js';

const MTU = 256;
/** Packets of each message: together they pass the wrap from every start. */
const PACKETS = 5;
const BYTES = PACKETS * MTU - 3;
const STARTS = Array.from({ length: 16 }, (_, i) => 0xfffff0 + i);

/** SEND, WRITE, READ and FETCH_ADD, each on its own quarter of the peer's region. */
function requests(from: Player, to: Player): SendWorkRequest[] {
  const quarter = from.mr.length / 4;
  const target = (k: number) => ({ remoteAddr: to.mr.addr + BigInt(k * quarter), rkey: to.mr.rkey });
  const own = (k: number, bytes = BYTES) => [from.mr.sge(k * quarter + quarter / 2, bytes)];
  return [
    { opcode: 'SEND', wrId: 0, sges: own(0) },
    { opcode: 'RDMA_WRITE', wrId: 1, sges: own(1), ...target(1) },
    { opcode: 'RDMA_READ', wrId: 2, sges: own(2), ...target(2) },
    { opcode: 'ATOMIC_FETCH_AND_ADD', wrId: 3, sges: own(3, 8), add: 5n, ...target(3) },
  ];
}

function checkMoved(from: Player, to: Player): void {
  const quarter = from.mr.length / 4;
  const here = (k: number) => from.mr.bytes.subarray(k * quarter + quarter / 2, k * quarter + quarter / 2 + BYTES);
  const there = (k: number) => to.mr.bytes.subarray(k * quarter, k * quarter + BYTES);
  for (const k of [0, 1, 2]) expect(there(k).equals(here(k))).toBe(true);
  expect(to.mr.bytes.readBigUInt64LE(3 * quarter)).toBe(6n);
  expect(here(3).readBigUInt64LE()).toBe(1n);
}

describe.each(recoveryNames())('%s crosses the PSN wrap', (recovery) => {
  it.each(
    STARTS.flatMap(
      (start) =>
        [
          [start.toString(16), undefined, start],
          [start.toString(16), 'a>b:psn=0xffffff:once;b>a:psn=0:once;every=7:x3', start],
        ] as const,
    ),
  )('from 0x%s on both sides, faults %s', async (_, faults, start) => {
    const pair = await createPair({
      recovery,
      mtu: MTU,
      startPsnA: start,
      startPsnB: 0xfffff0 + 0xffffff - start,
      memoryBytes: 16 * 1024,
      ...(faults !== undefined && { faults }),
    });
    const { a, b } = pair;
    for (const player of [a, b]) {
      const half = player.mr.length / 8;
      for (let i = 0; i < player.mr.length; i++) player.mr.bytes[i] = (i * 29 + (i >> 8) + player.startPsn) & 255;
      // The peer's READ and FETCH_ADD find this in the quarters 2 and 3, this side's own buffers are the second halves.
      player.mr.bytes.writeBigUInt64LE(1n, 6 * half);
    }
    for (const player of [a, b]) player.qp.postRecv({ wrId: 7, sges: [player.mr.sge(0, BYTES)] });
    a.qp.postSend(...requests(a, b));
    b.qp.postSend(...requests(b, a));
    for (const { cq, recvCq } of [a, b]) {
      expect(pair.completions(cq, 4).map(({ wrId, status }) => [wrId, status])).toEqual(
        [0, 1, 2, 3].map((k) => [k, 0]),
      );
      expect(pair.completions(recvCq, 1)).toMatchObject([{ wrId: 7, status: 0, byteLen: BYTES }]);
    }
    checkMoved(a, b);
    checkMoved(b, a);
    const { sqPsn } = await a.qp.query();
    expect(sqPsn).toBe((start + 3 * PACKETS + 1) & 0xffffff);
  });
});
