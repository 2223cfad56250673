/** The rings between application and NIC: free-running indices, fullness, and what crosses them. */

import { describe, expect, it } from 'vitest';
import { RoceError } from '../../src/core/errors.js';
import { CommandRing } from '../../src/memory/ring/command-ring.js';
import {
  COMMANDS,
  type CommandName,
  decodeFields,
  encodeFields,
  F64_BLOCK_LENGTH,
} from '../../src/memory/ring/commands.js';
import { ARM_NEXT, ARM_SOLICITED, CompletionRing, Cqe } from '../../src/memory/ring/completion-ring.js';
import { DoorbellRing } from '../../src/memory/ring/doorbell-ring.js';
import { EventRing } from '../../src/memory/ring/event-ring.js';
import { RecvQueue, RecvWqe, SendQueue, SendWqe } from '../../src/memory/ring/work-queue.js';
import { SendCompletions } from '../../src/qp/send-completions.js';

const KINDS = [
  ['plain', (bytes: number) => new ArrayBuffer(bytes)],
  ['shared', (bytes: number) => new SharedArrayBuffer(bytes)],
] as const;
/** Where free-running indices start, so that they wrap through 2^32 soon. */
const NEAR_WRAP = 0xfffffffd;

function cqeOf(index: number): Cqe {
  return Object.assign(new Cqe(), {
    index,
    qpn: 0xabcdef,
    status: 12,
    opcode: 129,
    flags: 0x8b,
    isReceive: true,
    byteCount: 0xfffffffe,
    immediate: 0x89abcdef,
    sourceQpn: 0x123456,
    vendorError: 0x61,
  });
}

describe.each(KINDS)('on %s memory', (_, allocate) => {
  it.each([
    [1, 1],
    [2, 2],
    [3, 4],
    [100, 128],
    [1 << 20, 1 << 20],
  ])('a queue for %i holds %i', (depth, slots) => {
    expect(EventRing.create(allocate, depth).depth).toBe(slots);
  });

  it.each([0, -1, 1.5, (1 << 20) + 1, Number.NaN])('a queue for %d is refused', (depth) => {
    expect(() => EventRing.create(allocate, depth)).toThrow(expect.objectContaining({ code: 'ERR_ROCE_OUT_OF_RANGE' }));
  });

  it('completions come out as they went in, in order, through the wrap of the indices', () => {
    const nic = CompletionRing.create(allocate, 4);
    const app = new CompletionRing(nic.memory); // The other side's view.
    nic.producer = NEAR_WRAP;
    nic.consumer = NEAR_WRAP;
    const out = new Cqe();
    for (let round = 0; round < 5; round++) {
      for (let k = 0; k < 4; k++) expect(nic.push(cqeOf(round * 4 + k))).toBe(true);
      expect(app.fill).toBe(4);
      expect(nic.push(cqeOf(99))).toBe(false);
      for (let k = 0; k < 4; k++) {
        expect(app.take(out)).toBe(true);
        expect(out).toEqual(cqeOf(round * 4 + k));
      }
      expect(app.take(out)).toBe(false);
    }
  });

  it('an armed completion queue fires once, and for what it was armed', () => {
    const ring = CompletionRing.create(allocate, 4);
    expect(ring.disarmIf(true)).toBe(false);
    ring.arm(ARM_SOLICITED);
    expect(ring.disarmIf(false)).toBe(false);
    expect(ring.disarmIf(true)).toBe(true);
    expect(ring.disarmIf(true)).toBe(false);
    ring.arm(ARM_NEXT);
    ring.arm(ARM_SOLICITED);
    expect(ring.disarmIf(false)).toBe(true);
  });

  it('completions of a forgotten QP belong to nobody; the others stay', () => {
    const ring = CompletionRing.create(allocate, 8);
    for (let k = 0; k < 6; k++) ring.push(Object.assign(cqeOf(k), { qpn: 100 + (k % 2), isReceive: k < 4 }));
    const returned: number[] = [];
    ring.forget(101, (cookie) => returned.push(cookie));
    expect(returned).toEqual([1, 3]);
    const out = new Cqe();
    const seen = Array.from({ length: 6 }, () => (ring.take(out) ? [out.index, out.qpn] : undefined));
    expect(seen).toEqual([
      [0, 100],
      [1, 0],
      [2, 100],
      [3, 0],
      [4, 100],
      [5, 0],
    ]);
  });

  it('events beyond the room are lost, the earlier ones are not', () => {
    const ring = EventRing.create(allocate, 2);
    expect([ring.push(1, 10), ring.push(2, 20), ring.push(3, 30)]).toEqual([true, true, false]);
    const out = { type: 0, id: 0 };
    const seen: number[][] = [];
    while (ring.take(out)) seen.push([out.type, out.id]);
    expect(seen).toEqual([
      [1, 10],
      [2, 20],
    ]);
    expect([ring.takeLost(), ring.takeLost()]).toEqual([true, false]);
    expect(ring.push(4, 0xffffffff)).toBe(true);
    expect(ring.takeLost()).toBe(false);
    expect(ring.take(out) && out.id).toBe(0xffffffff);
  });

  it('a send work request arrives with every field', () => {
    const app = SendQueue.create(allocate, 4, 3, 0);
    app.begin(NEAR_WRAP, 5, 7);
    app.putRemote(0x8000_0000_0000_0001n, 0xfffffff1);
    app.putImmediate(0xfffffff2);
    app.putOperands(0xfffffff3_fffffff4n, 0xfffffff5_fffffff6n);
    app.putReceiver(9, 0xffffff, 0x80000000);
    app.putBinding(0xabcdef, 0x2f);
    app.putSges([
      { addr: 0xfedc_ba98_7654_3210n, length: 2 ** 31 - 1, lkey: 0xffffffff },
      { addr: 1n, length: 1, lkey: 2 },
    ]);
    const nic = new SendQueue(app.memory);
    const wqe = new SendWqe();
    nic.read(NEAR_WRAP, wqe);
    expect(wqe).toMatchObject({
      index: NEAR_WRAP,
      opcode: 5,
      flags: 7,
      messageBytes: 2 ** 31,
      remoteHigh: 0x80000000,
      remoteLow: 1,
      rkey: 0xfffffff1,
      immediate: 0xfffffff2,
      compareAddHigh: 0xfffffff3,
      compareAddLow: 0xfffffff4,
      swapHigh: 0xfffffff5,
      swapLow: 0xfffffff6,
      ah: 9,
      remoteQpn: 0xffffff,
      qkey: 0x80000000,
      handle: 0xabcdef,
      access: 0x2f,
    });
    expect(wqe.sges.count).toBe(2);
    expect([wqe.sges.high[0], wqe.sges.low[0], wqe.sges.lengths[0], wqe.sges.lkeys[0]]).toEqual([
      0xfedcba98, 0x76543210, 0x7fffffff, 0xffffffff,
    ]);
    expect(nic.messageBytesAt(NEAR_WRAP)).toBe(2 ** 31);
  });

  it('a count of scatter/gather elements that memory was tampered with cannot lead outside the arrays', () => {
    const queue = SendQueue.create(allocate, 1, 1, 0);
    queue.view.setUint16(queue.offsetOf(0) + 2, 0xffff, true);
    const wqe = new SendWqe();
    expect(() => queue.read(0, wqe)).not.toThrow();
    expect(wqe.sges.count).toBeLessThanOrEqual(32);
  });

  it('receives are taken in order, and their slot is free at once', () => {
    const app = RecvQueue.create(allocate, 2, 2);
    const nic = new RecvQueue(app.memory);
    app.producer = NEAR_WRAP;
    app.consumer = NEAR_WRAP;
    const wqe = new RecvWqe();
    for (let n = 0; n < 6; n++) {
      app.write(app.producer, n, [{ addr: BigInt(n), length: n, lkey: n }]);
      app.producer = (app.producer + 1) >>> 0;
      expect(nic.take(wqe)).toBe(true);
      app.write(app.producer, 77, []); // Written, not published.
      expect([wqe.bound, wqe.cookie, wqe.sges.count, wqe.sges.lengths[0]]).toEqual([true, n, 1, n]);
      expect(nic.take(wqe)).toBe(false);
    }
  });

  it('commands are answered in place: results, refusals with code and words, unknown ones', () => {
    const app = CommandRing.create(allocate, 4);
    const nic = new CommandRing(app.memory);
    const good = app.submit('allocPd', {});
    const bad = app.submit('deallocPd', { pd: 7 });
    const unknown = app.submit('allocPd', {});
    app.view.setUint32(app.offsetOf(unknown), 9999, true);
    expect(app.isFull).toBe(false);
    const done = nic.drain((name) => {
      if (name === 'deallocPd') throw new RoceError('ERR_ROCE_BUSY', `busy ${'x'.repeat(1000)}`);
      return { pd: 42 } as never;
    });
    expect(done).toBe(3);
    expect(app.answer(good, 'allocPd')).toEqual({ pd: 42 });
    expect(() => app.answer(bad, 'deallocPd')).toThrow(
      expect.objectContaining({ code: 'ERR_ROCE_BUSY', message: expect.stringMatching(/^busy x{400}/) }),
    );
    expect(() => app.answer(unknown, 'allocPd')).toThrow(expect.objectContaining({ code: 'ERR_ROCE_UNSUPPORTED' }));
    expect(nic.drain(() => expect.unreachable())).toBe(0);
  });

  it('a defect in the NIC is not an answer', () => {
    const ring = CommandRing.create(allocate, 4);
    ring.submit('allocPd', {});
    expect(() =>
      ring.drain(() => {
        throw new TypeError('defect');
      }),
    ).toThrow(TypeError);
  });
});

describe('command fields', () => {
  const EXTREMES = {
    u32: [0, 0xffffffff],
    u53: [0, Number.MAX_SAFE_INTEGER],
    u64: [0n, 2n ** 64n - 1n],
    f64: [Number.MIN_VALUE, Number.NaN],
    f64s: [new Float64Array(F64_BLOCK_LENGTH), new Float64Array(F64_BLOCK_LENGTH).fill(Number.POSITIVE_INFINITY)],
    gid: [new Uint8Array(16), new Uint8Array(16).fill(0xff)],
    name: ['', 'z'.repeat(31)],
  };

  it.each(Object.keys(COMMANDS) as CommandName[])(
    '%s: every field of both directions survives, at its extremes',
    (name) => {
      for (const table of [COMMANDS[name].in, COMMANDS[name].out] as Array<Record<string, keyof typeof EXTREMES>>) {
        for (const which of [0, 1]) {
          const values = Object.fromEntries(
            Object.entries(table).map(([field, kind]) => [field, EXTREMES[kind][which]]),
          );
          const view = new DataView(new ArrayBuffer(1024));
          encodeFields(view, 16, table, values);
          expect(decodeFields(view, 16, table)).toEqual(values);
        }
      }
    },
  );

  it('have codes of their own', () => {
    const codes = Object.values(COMMANDS).map((command) => command.code);
    expect(new Set(codes).size).toBe(codes.length);
  });
});

describe('memory of another program', () => {
  const memory = (bytes: number, header: readonly number[]) => {
    const buffer = new ArrayBuffer(bytes);
    new Int32Array(buffer).set(header);
    return buffer;
  };

  it('is a ring if its elements fit', () => {
    expect(new RecvQueue(memory(64 + 4 * 32, [0, 0, 0, 4, 32])).depth).toBe(4);
  });

  it.each([
    ['has less than a header', 32, []],
    ['has no elements', 64, []],
    ['has a depth that is not a power of two', 64 + 3 * 32, [0, 0, 0, 3, 32]],
    ['has a depth below zero', 64 + 4 * 32, [0, 0, 0, -2147483648, 32]],
    ['has elements that are too short', 64 + 4 * 16, [0, 0, 0, 4, 12]],
    ['is shorter than its elements', 64 + 3 * 32, [0, 0, 0, 4, 32]],
  ])('is refused if it %s', (_, bytes, header) => {
    const refusal = expect.objectContaining({ code: 'ERR_ROCE_INVALID_ARGUMENT' });
    expect(() => new RecvQueue(memory(bytes, header))).toThrow(refusal);
  });

  it('rings each doorbell once per round at most, whatever its index says', () => {
    const ring = new DoorbellRing(memory(64 + 8 * 4, [0, 0, 0, 8, 4]));
    ring.producer = 0x7fff_ffff;
    let rung = 0;
    ring.drain(
      () => rung++,
      () => {},
    );
    expect(rung).toBe(8);
  });
});

describe('a queue whose header the program has damaged', () => {
  const DEPTH = 4;
  const plain = (bytes: number) => new ArrayBuffer(bytes);

  it.each([NEAR_WRAP, 0, 7])('has published what it can hold after index %i, and nothing else', (consumer) => {
    const queue = SendQueue.create(plain, DEPTH, 1, 0);
    queue.consumer = consumer;
    for (const [posted, expected] of [
      [0, false],
      [1, true],
      [DEPTH, true],
      [DEPTH + 1, false],
      [-1, false],
    ] as const) {
      queue.producer = (consumer + posted) >>> 0;
      expect(queue.isPublished(consumer), `${posted} posted`).toBe(expected);
    }
  });

  it('ends no loop of the NIC late: a flush completes nothing, and receives are none', () => {
    const sendQueue = SendQueue.create(plain, DEPTH, 1, 0);
    sendQueue.producer = 2 ** 31;
    const complete = () => expect.fail('a work request was completed that nobody posted');
    new SendCompletions({ sendQueue, qpn: 2, sendCq: { complete }, signalAll: true } as never).flush();
    const receives = RecvQueue.create(plain, DEPTH, 1);
    receives.producer = 2 ** 31;
    expect(receives.take(new RecvWqe())).toBe(false);
  });
});
