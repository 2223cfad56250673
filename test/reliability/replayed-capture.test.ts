/**
 * Somebody has recorded a connection and plays its packets, shuffled, to the same queue pairs while they are in use: checksums, addresses, QPNs and
 * keys are right, PSNs are of the past. Nothing changes in memory, nothing completes, the connection goes on, and the answers are few.
 */

import { describe, expect, it } from 'vitest';
import { randomInt, SeededRandom } from '../../src/core/random.js';
import type { RxDatagram } from '../../src/port/datagram.js';
import { createPair, type Pair } from '../support/pair.js';
import { transfer } from './transfer.js';
import { lay } from './unruly-wire.js';

const RATE_BPS = 10e9;
const FLIGHT_NS = 2_000;
const ROUNDS = 3;

type Recovery = 'go-back-n' | 'selective-repeat';

interface Recorded {
  readonly pair: Pair;
  /** What each end has received so far. */
  readonly towards: { readonly a: RxDatagram[]; readonly b: RxDatagram[] };
  readonly sentBytes: { a: number; b: number };
}

async function record(recovery: Recovery): Promise<Recorded> {
  const pair = await createPair({ recovery });
  const { a, b, events } = pair;
  const recorded: Recorded = { pair, towards: { a: [], b: [] }, sentBytes: { a: 0, b: 0 } };
  for (const [name, from, to] of [
    ['a', a, b],
    ['b', b, a],
  ] as const) {
    // biome-ignore format: two ends
    lay(from.host, events, RATE_BPS, (datagram) => {
      recorded.towards[name === 'a' ? 'b' : 'a'].push({ ...datagram, bytes: datagram.bytes.slice() });
      recorded.sentBytes[name] += datagram.length;
      return [{ to: to.host, afterNs: FLIGHT_NS }];
    });
  }
  for (const op of ['SEND', 'RDMA_WRITE', 'RDMA_READ'] as const) {
    transfer(pair, { op, messages: 8, messageBytes: 20_000 });
  }
  const atomic = { opcode: 'ATOMIC_FETCH_AND_ADD', add: 5n, remoteAddr: b.mr.addr, rkey: b.mr.rkey } as const;
  b.mr.bytes.fill(0);
  for (let i = 0; i < 8; i++) a.qp.postSend({ ...atomic, sges: [a.mr.sge(0, 8)] });
  pair.completions(a.cq, 8);
  return recorded;
}

function shuffled<T>(list: readonly T[], seed: number): T[] {
  const random = new SeededRandom(seed).stream('shuffle');
  const result = [...list];
  for (let i = result.length - 1; i > 0; i--) {
    const j = randomInt(random, 0, i);
    [result[i], result[j]] = [result[j], result[i]];
  }
  return result;
}

const copyOf = (datagram: RxDatagram): RxDatagram => ({ ...datagram, bytes: datagram.bytes.slice() });

describe.each(['go-back-n', 'selective-repeat'] as const)(
  'a recorded connection, played back shuffled, %s',
  (scheme) => {
    it('changes no byte and completes nothing while the connection rests', async () => {
      const { pair, towards } = await record(scheme);
      const { a, b } = pair;
      for (const { mr } of [a, b]) mr.bytes.fill(0xee);
      b.qp.postRecv({ wrId: 77, sges: [b.mr.sge(0, 32 << 10)] });
      const replay = [...towards.b.map((d) => ['b', d] as const), ...towards.a.map((d) => ['a', d] as const)];
      for (let round = 0; round < ROUNDS; round++) {
        for (const [end, datagram] of shuffled(replay, round)) pair[end].host.receive(copyOf(datagram));
        pair.run();
      }
      for (const { mr, cq, recvCq } of [a, b]) {
        expect(mr.bytes.every((byte) => byte === 0xee)).toBe(true);
        expect([...cq.poll(), ...recvCq.poll()]).toEqual([]);
      }
      expect(b.device.counters().duplicate_request).toBeGreaterThan(100);
      expect(a.device.counters().stale_response).toBeGreaterThan(100);

      // It goes on, and the receive that was posted is for the next real message.
      a.mr.bytes.fill(1);
      a.qp.postSend({ opcode: 'SEND', sges: [a.mr.sge(0, 20_000)] });
      expect(pair.completions(a.cq, 1)).toMatchObject([{ status: 0 }]);
      expect(b.recvCq.poll()).toMatchObject([{ wrId: 77, status: 0, byteLen: 20_000 }]);
    });

    it('between packets in flight leaves every message whole', async () => {
      const { pair, towards, sentBytes } = await record(scheme);
      const { a, b, events } = pair;
      const [toA, toB] = [shuffled(towards.a, 1), shuffled(towards.b, 2)];
      const before = sentBytes.b;
      let played = 0;
      let playedBytes = 0;
      const play = () => {
        for (const [end, list] of [
          [a, toA],
          [b, toB],
        ] as const) {
          // biome-ignore format: two ends
          const datagram = list[played % list.length];
          if (end === b) playedBytes += datagram.length;
          end.host.receive(copyOf(datagram));
        }
        if (++played < 2_000) events.after(500, play);
      };
      play();
      for (const op of ['SEND', 'RDMA_WRITE', 'RDMA_READ'] as const) {
        transfer(pair, { op, messages: 24, messageBytes: 20_000 });
      }
      pair.run();
      console.log(
        `${scheme}: ${played} packets each way; b sent ${sentBytes.b - before} bytes while it got ${playedBytes} replayed ones`,
      );
      expect(a.cq.poll()).toEqual([]);
      expect((await a.qp.query()).state).toBe('RTS');
      expect((await b.qp.query()).state).toBe('RTS');
    });
  },
);
