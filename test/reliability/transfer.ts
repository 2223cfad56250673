/** Messages in number over a pair, checked byte by byte: what the tests of faults measure. */

import { expect } from 'vitest';
import { pattern } from '../support/lone-nic.js';
import type { Pair } from '../support/pair.js';

export const OPS = ['SEND', 'RDMA_WRITE', 'RDMA_READ'] as const;
export type Op = (typeof OPS)[number];

interface Transfer {
  readonly op: Op;
  readonly messages: number;
  readonly messageBytes: number;
  /** Messages posted ahead. Default 8. */
  readonly outstanding?: number;
  readonly eventsMax?: number;
}

/** Payload bits a second of virtual time. Every byte must be the one that was sent, every message complete once and in order. */
export function transfer(pair: Pair, { op, messages, messageBytes, outstanding = 8, eventsMax }: Transfer): number {
  const { a, b, events } = pair;
  const [source, sink] = op === 'RDMA_READ' ? [b, a] : [a, b];
  const slots = Math.min(outstanding, Math.floor(source.mr.length / messageBytes));
  source.mr.bytes.set(pattern(slots * messageBytes, 3));
  sink.mr.bytes.fill(0);
  const startNs = events.nowNs;
  const post = (k: number) => {
    const at = (k % slots) * messageBytes;
    const sges = [a.mr.sge(at, messageBytes)];
    if (op === 'SEND') {
      b.qp.postRecv({ wrId: k, sges: [b.mr.sge(at, messageBytes)] });
      a.qp.postSend({ opcode: op, wrId: k, sges });
    } else a.qp.postSend({ opcode: op, wrId: k, sges, remoteAddr: b.mr.addr + BigInt(at), rkey: b.mr.rkey });
  };
  for (let k = 0; k < slots && k < messages; k++) post(k);
  for (let done = 0; done < messages; done++) {
    const [wc] = pair.completions(a.cq, 1, eventsMax);
    expect([wc.wrId, wc.statusName]).toEqual([done, 'SUCCESS']);
    const at = (done % slots) * messageBytes;
    const arrived = sink.mr.bytes.subarray(at, at + messageBytes);
    if (!arrived.equals(source.mr.bytes.subarray(at, at + messageBytes))) throw new Error(`message ${done} differs`);
    arrived.fill(0);
    if (done + slots < messages) post(done + slots);
  }
  const seconds = (events.nowNs - startNs) / 1e9;
  if (op === 'SEND') {
    const received = b.recvCq.poll(messages).map(({ wrId, statusName }) => `${wrId} ${statusName}`);
    expect(received).toEqual(Array.from({ length: messages }, (_, k) => `${k} SUCCESS`));
  }
  return (messages * messageBytes * 8) / seconds;
}
