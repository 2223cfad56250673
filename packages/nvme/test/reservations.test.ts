/** Reservations: hosts on one namespace, in virtual time. */

import { beforeEach, describe, expect, it } from 'vitest';
import { MemoryDevice } from '../../../src/storage-rpc/disk/memory-device.js';
import { ADMIN, FEATURE, IO } from '../src/opcodes.js';
import { NOTICE, type ReservationState } from '../src/reservations.js';
import { DNR, STATUS } from '../src/status.js';
import { Host } from './hosts.js';
import { RawQueue, statusOf } from './raw-queue.js';
import { DISK_BYTES, TcpWorld } from './world.js';

const OK = 0;
const CONFLICT = STATUS.RESERVATION_CONFLICT | DNR;
const WRONG = STATUS.INVALID_FIELD | DNR;
const IEKEY = 8;
const PERSISTS = 3 << 30;

let world: TcpWorld;
let one: Host;
let two: Host;

async function connect(options = {}): Promise<void> {
  world = new TcpWorld(options);
  one = await Host.connect(world, 1);
  two = await Host.connect(world, 2);
}

beforeEach(() => connect());

describe('registration', () => {
  it('is by a key, which the host may replace or give up, and nobody else', async () => {
    expect(await one.register(11)).toBe(OK);
    expect(await one.register(11)).toBe(OK);
    expect(await one.register(12)).toBe(CONFLICT);
    expect(await one.register(12, 10)).toBe(CONFLICT);
    expect(await one.register(12, 11)).toBe(OK);
    expect(await two.register(0)).toBe(WRONG);
    expect(await two.register(22, 12)).toBe(CONFLICT);
    expect(await two.unregister(12)).toBe(CONFLICT);
    expect(await two.register(22)).toBe(OK);
    expect((await two.report()).hosts).toEqual([
      { hostId: 1, key: 12, isHolder: false },
      { hostId: 2, key: 22, isHolder: false },
    ]);
    expect(await one.unregister(11)).toBe(CONFLICT);
    expect(await one.unregister(12)).toBe(OK);
    expect((await two.report()).hosts).toEqual([{ hostId: 2, key: 22, isHolder: false }]);
  });

  it('ignores the key where the command says so, for registrants alone', async () => {
    await one.register(11);
    expect(await one.register(12, 99, IEKEY)).toBe(OK);
    expect(await two.register(22, 99, IEKEY)).toBe(CONFLICT);
    expect(await one.unregister(99, IEKEY)).toBe(OK);
  });

  it('belongs to the host, whichever controller it uses', async () => {
    await one.register(11);
    await one.acquire(11, 1);
    const again = await Host.connect(world, 1);
    expect(await again.register(12)).toBe(CONFLICT);
    expect(await again.write()).toBe(OK);
    expect(await two.write()).toBe(CONFLICT);
  });

  it('counts generations, which other commands leave', async () => {
    await one.register(11);
    await two.register(22);
    const { generation } = await one.report();
    await one.acquire(11, 1);
    await one.release(11, 1);
    expect((await one.report()).generation).toBe(generation);
    await two.preempt(22, 11, 1);
    await two.clear(22);
    expect((await one.report()).generation).toBe(generation + 2);
  });

  it('refuses an action, a type and a persistence that there is not', async () => {
    await one.register(11);
    expect(await one.register(11, undefined, 5)).toBe(WRONG);
    expect(await one.register(11, undefined, PERSISTS)).toBe(WRONG);
    expect(await one.acquire(11, 0)).toBe(WRONG);
    expect(await one.acquire(11, 7)).toBe(WRONG);
    expect(await one.preempt(11, 11, 1, 3)).toBe(WRONG);
    expect(await one.preempt(11, 11, 1, IEKEY | 1)).toBe(WRONG);
    expect((await one.report()).type).toBe(0);
  });
});

describe('who may do what', () => {
  // Holder, registrant, stranger: read and write.
  it.each([
    [1, 'write exclusive', [OK, OK], [OK, CONFLICT], [OK, CONFLICT]],
    [2, 'exclusive access', [OK, OK], [CONFLICT, CONFLICT], [CONFLICT, CONFLICT]],
    [3, 'write exclusive, registrants only', [OK, OK], [OK, OK], [OK, CONFLICT]],
    [4, 'exclusive access, registrants only', [OK, OK], [OK, OK], [CONFLICT, CONFLICT]],
    [5, 'write exclusive, all registrants', [OK, OK], [OK, OK], [OK, CONFLICT]],
    [6, 'exclusive access, all registrants', [OK, OK], [OK, OK], [CONFLICT, CONFLICT]],
  ])('type %i: %s', async (type, _, holder, registrant, stranger) => {
    const three = await Host.connect(world, 3);
    await one.register(11);
    await two.register(22);
    expect(await one.acquire(11, type)).toBe(OK);
    for (const [host, [reads, writes]] of [
      [one, holder],
      [two, registrant],
      [three, stranger],
    ] as const) {
      expect([await host.read(), await host.write()], `host ${host.number}`).toEqual([reads, writes]);
      const flush = { opcode: IO.FLUSH, nsid: 1 };
      const zeroes = { opcode: IO.WRITE_ZEROES, nsid: 1, dwords: [0, 0, 7] };
      const verify = { opcode: IO.VERIFY, nsid: 1, dwords: [0, 0, 7] };
      expect(await host.io.status(flush)).toBe(writes);
      expect(await host.io.status(zeroes)).toBe(writes);
      expect(await host.io.status(verify)).toBe(reads);
    }
    expect(await one.release(11, type)).toBe(OK);
    expect(await three.write()).toBe(OK);
  });
});

describe('a reservation', () => {
  beforeEach(async () => {
    await one.register(11);
    await two.register(22);
  });

  it('is for registrants with their key, and for one at a time', async () => {
    const three = await Host.connect(world, 3);
    expect(await three.acquire(0, 1)).toBe(CONFLICT);
    expect(await one.acquire(22, 1)).toBe(CONFLICT);
    expect(await one.acquire(11, 1)).toBe(OK);
    expect(await one.acquire(11, 1)).toBe(OK);
    expect(await one.acquire(11, 2)).toBe(CONFLICT);
    expect(await two.acquire(22, 1)).toBe(CONFLICT);
    expect(await one.report()).toMatchObject({
      type: 1,
      hosts: [
        { hostId: 1, isHolder: true },
        { hostId: 2, isHolder: false },
      ],
    });
  });

  it('is released by its holder with its type; others release nothing', async () => {
    await one.acquire(11, 1);
    expect(await two.release(22, 1)).toBe(OK);
    expect(await one.release(11, 2)).toBe(WRONG);
    expect(await one.release(12, 1)).toBe(CONFLICT);
    expect((await two.report()).type).toBe(1);
    expect(await one.release(11, 1)).toBe(OK);
    expect((await two.report()).type).toBe(0);
  });

  it('ends when its holder gives up the registration; that of all with the last of them', async () => {
    await one.acquire(11, 3);
    await one.unregister(11);
    expect((await two.report()).type).toBe(0);
    await one.register(11);
    await one.acquire(11, 5);
    await one.unregister(11);
    expect((await two.report()).type).toBe(5);
    await two.unregister(22);
    expect((await two.report()).type).toBe(0);
  });

  it('is preempted with the key of its holder, who is fenced then', async () => {
    await one.acquire(11, 1);
    expect(await one.write()).toBe(OK);
    expect(await two.preempt(22, 33, 1)).toBe(CONFLICT);
    expect(await two.preempt(22, 0, 1)).toBe(WRONG);
    expect(await two.preempt(22, 11, 2)).toBe(OK);
    expect([await one.write(), await one.read()]).toEqual([CONFLICT, CONFLICT]);
    expect(await two.write()).toBe(OK);
    expect((await two.report()).hosts).toEqual([{ hostId: 2, key: 22, isHolder: true }]);
    expect(await one.acquire(11, 1)).toBe(CONFLICT);
  });

  it('stays when the key of another registrant is preempted', async () => {
    const three = await Host.connect(world, 3);
    await three.register(33);
    await one.acquire(11, 3);
    expect(await three.preempt(33, 22, 1)).toBe(OK);
    expect(await two.write()).toBe(CONFLICT);
    expect(await one.report()).toMatchObject({ type: 3, hosts: [{ isHolder: true }, { isHolder: false }] });
  });

  it('of all registrants is preempted with key 0, and then for one', async () => {
    await one.acquire(11, 5);
    expect(await two.preempt(22, 0, 1)).toBe(OK);
    expect(await one.write()).toBe(CONFLICT);
    expect((await two.report()).hosts).toEqual([{ hostId: 2, key: 22, isHolder: true }]);
  });

  it('changes its type when its holder preempts itself', async () => {
    await one.acquire(11, 1);
    expect(await one.preempt(11, 11, 4)).toBe(OK);
    expect(await two.report()).toMatchObject({ type: 4, hosts: [{ key: 11, isHolder: true }, { key: 22 }] });
  });

  it('goes with all registrations when it is cleared', async () => {
    await one.acquire(11, 1);
    expect(await two.clear(22)).toBe(OK);
    expect(await one.report()).toMatchObject({ type: 0, hosts: [] });
    expect(await two.write()).toBe(OK);
  });

  it('outlives the association of its holder', async () => {
    await one.acquire(11, 1);
    one.admin.queue.fail(new Error('the host dies'));
    await world.pass(60e9);
    expect(await two.write()).toBe(CONFLICT);
  });

  it('cannot be reported without host IDs of 128 bits', async () => {
    const report = { opcode: IO.RESERVATION_REPORT, nsid: 1, dwords: [15, 0], into: Buffer.alloc(64) };
    expect(await one.io.status(report)).toBe(STATUS.HOST_ID_FORMAT | DNR);
  });

  it('gives as much of a report as was asked for', async () => {
    const into = Buffer.alloc(16);
    await one.io.send({ opcode: IO.RESERVATION_REPORT, nsid: 1, dwords: [3, 1], into });
    expect(into.readUInt16LE(5)).toBe(2);
  });
});

describe('a write under way when its host is fenced', () => {
  class SlowDisk extends MemoryDevice {
    begun = 0;
    finish = () => {};
    override async write(offset: number, data: Uint8Array): Promise<void> {
      if (data[0] === 1) {
        this.begun++;
        await new Promise<void>((go) => {
          this.finish = go;
        });
      }
      await super.write(offset, data);
    }
  }

  it.each([1, 2])('is over when the answer to the preemption comes (action %i)', async (action) => {
    const disk = new SlowDisk(DISK_BYTES);
    await connect({ disk });
    await one.register(11);
    await two.register(22);
    await one.acquire(11, 1);
    const writing = one.io.queue.execute({
      opcode: IO.WRITE,
      nsid: 1,
      dwords: [0, 0, 7],
      out: Buffer.alloc(4096, 1),
    });
    await world.pass(1e6);
    expect(disk.begun).toBe(1);
    const keys = Buffer.alloc(16);
    keys[0] = 22;
    keys[8] = 11;
    let isPreempted = false;
    const preempting = two.io.queue
      .execute({ opcode: IO.RESERVATION_ACQUIRE, nsid: 1, dwords: [action | (1 << 8)], out: keys })
      .then(() => {
        isPreempted = true;
      });
    await world.pass(1e9);
    expect(isPreempted).toBe(false);
    expect(await one.write()).toBe(CONFLICT); // It is fenced already.
    disk.finish();
    await world.until(Promise.all([writing, preempting]));
    expect(await two.write(2)).toBe(OK);
    const read = Buffer.alloc(4096);
    await disk.read(0, 4096, read);
    expect(read.every((byte) => byte === 2)).toBe(true);
  });

  it('does not reach the disk if its data comes after the fencing', async () => {
    await one.register(11);
    await two.register(22);
    await one.acquire(11, 1);
    const { host } = world.pipes[1];
    const send = host.write.bind(host);
    let held: (() => void) | undefined;
    // The command is sent; the data that the target asks for is held back.
    host.write = (chunks) => {
      if (chunks[0][0] === 0x06) held = () => send(chunks);
      else send(chunks);
    };
    const out = Buffer.alloc(64 << 10, 1);
    const writing = statusOf(one.io.queue.execute({ opcode: IO.WRITE, nsid: 1, dwords: [0, 0, 127], out }));
    while (held === undefined) await world.pass(1e5);
    expect(await two.preempt(22, 11, 1)).toBe(OK);
    held();
    expect(await world.until(writing)).toBe(CONFLICT);
    const read = Buffer.alloc(4096);
    await world.disk.read(0, 4096, read);
    expect(read.every((byte) => byte === 0)).toBe(true);
  });
});

describe('hosts are told', () => {
  const event = (host: Host) => world.until(host.admin.queue.execute({ opcode: ADMIN.ASYNC_EVENT_REQUEST }));

  it('that their registration was preempted', async () => {
    await one.register(11);
    await two.register(22);
    await one.acquire(11, 1);
    await two.preempt(22, 11, 1);
    expect((await event(one)).result).toBe(0x80_00_06n);
    expect(await one.notice()).toEqual([NOTICE.REGISTRATION_PREEMPTED, 0]);
    expect(await one.notice()).toEqual([0, 0]);
    expect(await two.notice()).toEqual([0, 0]);
  });

  it('that a reservation which gave them rights was released, or cleared; one after the other', async () => {
    await one.register(11);
    await two.register(22);
    await one.acquire(11, 3);
    await one.release(11, 3);
    await one.acquire(11, 1);
    await one.release(11, 1); // It gave nobody else rights.
    await one.clear(11);
    expect((await event(two)).result).toBe(0x80_00_06n);
    expect(await two.notice()).toEqual([NOTICE.RESERVATION_RELEASED, 1]);
    expect((await event(two)).result).toBe(0x80_00_06n);
    expect(await two.notice()).toEqual([NOTICE.RESERVATION_PREEMPTED, 0]);
  });

  it('but not of what they have masked', async () => {
    const feature = FEATURE.RESERVATION_NOTIFICATION_MASK;
    expect(await one.admin.status({ opcode: ADMIN.SET_FEATURES, nsid: 1, dwords: [feature, 0xff] })).toBe(OK);
    expect(await one.admin.send({ opcode: ADMIN.GET_FEATURES, nsid: 1, dwords: [feature] })).toBe(0x0e);
    await one.register(11);
    await two.register(22);
    await two.preempt(22, 11, 1);
    expect(await one.notice()).toEqual([0, 0]);
    expect(await one.admin.status({ opcode: ADMIN.GET_FEATURES, nsid: 2, dwords: [feature] })).toBe(
      STATUS.INVALID_NAMESPACE | DNR,
    );
  });

  it('who they are', async () => {
    const into = Buffer.alloc(16);
    await two.admin.send({ opcode: ADMIN.GET_FEATURES, dwords: [FEATURE.HOST_IDENTIFIER, 1], into });
    expect(into.equals(Buffer.alloc(16, 2))).toBe(true);
  });
});

describe('with a store', () => {
  let kept: ReservationState | undefined;
  const store = () => ({
    initial: kept,
    save: async (state: ReservationState | undefined) => {
      kept = state;
    },
  });

  it('registrations and reservation outlive the target, if hosts have asked for it', async () => {
    kept = undefined;
    await connect({ reservationStore: store() });
    await one.register(11);
    expect(kept).toBeUndefined();
    await two.register(22, undefined, PERSISTS);
    await one.acquire(11, 1);
    await world.until(world.target.close());
    await connect({ reservationStore: store() });
    expect(await two.report()).toMatchObject({
      type: 1,
      persists: true,
      hosts: [
        { hostId: 1, key: 11, isHolder: true },
        { hostId: 2, key: 22, isHolder: false },
      ],
    });
    expect(await two.write()).toBe(CONFLICT);
    const feature = FEATURE.RESERVATION_PERSISTENCE;
    expect(await two.admin.send({ opcode: ADMIN.GET_FEATURES, nsid: 1, dwords: [feature] })).toBe(1);
    expect(await two.admin.status({ opcode: ADMIN.SET_FEATURES, nsid: 1, dwords: [feature, 0] })).toBe(OK);
    expect(kept).toBeUndefined();
  });

  it('says so in Identify; without one it does not', async () => {
    const identify = async (at: number) => {
      const admin = await RawQueue.admin(world);
      const into = Buffer.alloc(4096);
      await admin.send({ opcode: ADMIN.IDENTIFY, nsid: 1, dwords: [0], into });
      return into[at];
    };
    expect(await identify(31)).toBe(0xfe);
    await connect({ reservationStore: store() });
    expect(await identify(31)).toBe(0xff);
  });
});
