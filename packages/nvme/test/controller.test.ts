/** A controller, command by command: what it does, and what it refuses. */

import { beforeEach, describe, expect, it } from 'vitest';
import { MemoryDevice } from '../../../src/storage-rpc/disk/memory-device.js';
import { ADMIN, CNS, FCTYPE, FEATURE, IO, LOG, OP_FABRICS, PROPERTY } from '../src/opcodes.js';
import { DNR, STATUS } from '../src/status.js';
import { PDU } from '../src/tcp/pdu.js';
import { RawQueue, statusOf } from './raw-queue.js';
import { DISK_BYTES, HOST_NQN, NQN, TcpWorld } from './world.js';

const BLOCKS = DISK_BYTES / 512;
let world: TcpWorld;
let admin: RawQueue & { cntlid: number };
beforeEach(async () => {
  world = new TcpWorld();
  admin = await RawQueue.admin(world);
});

async function ioQueue(qid = 1): Promise<RawQueue> {
  const queue = await RawQueue.open(world);
  await queue.connect({ qid, cntlid: admin.cntlid });
  return queue;
}

describe('Connect of an I/O queue', () => {
  const connect = async (request: object) => statusOf((await RawQueue.open(world)).connect(request));

  it('takes queues up to the 64th, each once', async () => {
    const { cntlid } = admin;
    expect(await connect({ qid: 64, cntlid })).toBe(0);
    expect(await connect({ qid: 64, cntlid })).toBe(STATUS.CONNECT_BUSY | DNR);
    expect(await connect({ qid: 65, cntlid })).toBe(STATUS.CONNECT_INVALID_PARAMETERS | DNR);
  });

  it('takes no more than the host was granted', async () => {
    const asked = { opcode: ADMIN.SET_FEATURES, dwords: [FEATURE.NUMBER_OF_QUEUES, 0x0003_0001] };
    expect(await admin.send(asked)).toBe(0x0001_0001);
    expect(await connect({ qid: 2, cntlid: admin.cntlid })).toBe(0);
    expect(await connect({ qid: 3, cntlid: admin.cntlid })).toBe(STATUS.CONNECT_INVALID_PARAMETERS | DNR);
  });

  it.each([
    ['another controller', { cntlid: 77 }],
    ['another host', { hostnqn: `${HOST_NQN}2` }],
    ['one entry', { entries: 1 }],
    ['too many entries', { entries: 129 }],
  ])('refuses %s', async (_, wrong) => {
    expect(await connect({ qid: 1, cntlid: admin.cntlid, ...wrong })).toBe(STATUS.CONNECT_INVALID_PARAMETERS | DNR);
    expect(await connect({ qid: 1, cntlid: admin.cntlid })).toBe(0);
  });

  it('refuses a controller that is not enabled, or whose entries have other sizes', async () => {
    await admin.enable(0);
    expect(await connect({ qid: 1, cntlid: admin.cntlid })).toBe(STATUS.CONNECT_INVALID_PARAMETERS | DNR);
    await admin.enable(0x0045_0001);
    expect(await connect({ qid: 1, cntlid: admin.cntlid })).toBe(STATUS.CONNECT_INVALID_PARAMETERS | DNR);
  });
});

describe('the SGL', () => {
  /** Has the newest connection send command capsules with this type of SGL. */
  function writeSglType(type: number): void {
    const { host } = world.pipes.at(-1)!;
    const write = host.write.bind(host);
    host.write = (pieces, onSent) => {
      const pdu = Buffer.concat(pieces);
      if (pdu[0] === PDU.CAPSULE_CMD) pdu[8 + 39] = type;
      write([pdu], onSent);
    };
  }

  it.each([0x5a, 0x00, 0x01, 0x40, 0xff])('of a command without data is ignored: type %i', async (type) => {
    const io = await ioQueue();
    writeSglType(type);
    expect(await io.status({ opcode: IO.FLUSH, nsid: 1 })).toBe(0);
    expect(await io.status({ opcode: IO.WRITE_ZEROES, nsid: 1, dwords: [0, 0, 7] })).toBe(0);
  });

  it('of a command with data must be one that the transport has', async () => {
    const io = await ioQueue();
    const read = { opcode: IO.READ, nsid: 1, dwords: [0, 0, 0], into: Buffer.alloc(512) };
    expect(await io.status(read)).toBe(0);
    writeSglType(0x40);
    expect(await io.status(read)).toBe(STATUS.SGL_TYPE_INVALID | DNR);
  });
});

describe('the keep-alive timer', () => {
  const timer = (queue: RawQueue) => queue.send({ opcode: ADMIN.GET_FEATURES, dwords: [FEATURE.KEEP_ALIVE_TIMER] });

  it('is rounded up to units of KAS, from Connect and from Set Features', async () => {
    const connected = await RawQueue.admin(world, {
      keepAliveMs: 1234,
      hostnqn: `${HOST_NQN}2`,
      hostId: Buffer.alloc(16, 2),
    });
    expect(await timer(connected)).toBe(2000);
    await admin.send({ opcode: ADMIN.SET_FEATURES, dwords: [FEATURE.KEEP_ALIVE_TIMER, 5001] });
    expect(await timer(admin)).toBe(6000);
    await admin.send({ opcode: ADMIN.SET_FEATURES, dwords: [FEATURE.KEEP_ALIVE_TIMER, 0xffff_ffff] });
    expect(await timer(admin)).toBe(4_294_967_000);
    await admin.send({ opcode: ADMIN.SET_FEATURES, dwords: [FEATURE.KEEP_ALIVE_TIMER, 0] });
    expect(await timer(admin)).toBe(0);
  });
});

describe('temperature and firmware', () => {
  const threshold = (value: number) => ({ dwords: [FEATURE.TEMPERATURE_THRESHOLD, value] });

  it('have plausible values: one read-only slot, limits above the temperature, none below it', async () => {
    const into = Buffer.alloc(4096);
    await admin.send({ opcode: ADMIN.IDENTIFY, dwords: [CNS.CONTROLLER], into });
    expect([into[260], into.readUInt16LE(266), into.readUInt16LE(268)]).toEqual([3, 343, 353]);
    expect(await admin.send({ opcode: ADMIN.GET_FEATURES, ...threshold(0) })).toBe(343);
    expect(await admin.send({ opcode: ADMIN.GET_FEATURES, ...threshold(1 << 20) })).toBe(0);
    await admin.send({ opcode: ADMIN.SET_FEATURES, ...threshold((1 << 20) | 280) });
    expect((await admin.send({ opcode: ADMIN.GET_FEATURES, ...threshold(1 << 20) })) & 0xffff).toBe(280);
    expect(await admin.send({ opcode: ADMIN.GET_FEATURES, ...threshold(0) })).toBe(343);
    expect(await admin.status({ opcode: ADMIN.GET_FEATURES, ...threshold(3 << 16) })).toBe(STATUS.INVALID_FIELD | DNR);
  });
});

describe('properties', () => {
  it('become ready and are shut down as the host says', async () => {
    expect(await admin.property(PROPERTY.CSTS)).toBe(1);
    await admin.enable(0x0046_4001);
    expect(await admin.property(PROPERTY.CSTS)).toBe(1 | (2 << 2));
    await admin.enable(0);
    expect(await admin.property(PROPERTY.CSTS)).toBe(0);
  });

  it('end the I/O queues of a controller that is reset, and not its admin queue', async () => {
    await ioQueue();
    await admin.enable(0);
    await world.pass(1e6);
    expect(world.target.connections.tcp).toBe(1);
  });

  it('refuse an offset that there is not', async () => {
    expect(await statusOf(admin.property(0x1000))).toBe(STATUS.INVALID_FIELD | DNR);
  });

  it('are for connected admin queues only', async () => {
    const stranger = await RawQueue.open(world);
    expect(await statusOf(stranger.property(PROPERTY.VS))).toBe(STATUS.INVALID_OPCODE | DNR);
    expect(await statusOf((await ioQueue()).property(PROPERTY.VS))).toBe(STATUS.INVALID_OPCODE | DNR);
  });
});

describe('admin commands', () => {
  const identify = (cns: number, nsid: number) => ({
    opcode: ADMIN.IDENTIFY,
    nsid,
    dwords: [cns],
    into: Buffer.alloc(4096),
  });

  it.each([
    CNS.CONTROLLER,
    CNS.NAMESPACE,
    CNS.NAMESPACE_DESCRIPTORS,
    CNS.IO_NAMESPACE,
    CNS.IO_CONTROLLER,
    CNS.INDEPENDENT_NAMESPACE,
  ])('identify 0x%i', async (cns) => {
    expect(await admin.status(identify(cns, 1))).toBe(0);
  });

  it('refuse a namespace, a structure, a log page, a feature and a command that there is not', async () => {
    const into = Buffer.alloc(64);
    expect(await admin.status(identify(CNS.NAMESPACE, 1025))).toBe(STATUS.INVALID_NAMESPACE | DNR);
    expect(await admin.status(identify(0x60, 1))).toBe(STATUS.INVALID_FIELD | DNR);
    const log = { opcode: ADMIN.GET_LOG_PAGE, dwords: [0xc0 | (15 << 16)], into };
    expect(await admin.status(log)).toBe(STATUS.INVALID_LOG_PAGE | DNR);
    expect(await admin.status({ opcode: ADMIN.GET_FEATURES, dwords: [0x7e] })).toBe(STATUS.INVALID_FIELD | DNR);
    expect(await admin.status({ opcode: 0x7d })).toBe(STATUS.INVALID_OPCODE | DNR);
  });

  it('refuse data of another length, and data in the capsule where none belongs', async () => {
    const short = { ...identify(CNS.CONTROLLER, 0), into: Buffer.alloc(2048) };
    expect(await admin.status(short)).toBe(STATUS.SGL_LENGTH_INVALID | DNR);
    const { into: out, ...rest } = identify(CNS.CONTROLLER, 0);
    expect(await admin.status({ ...rest, out })).toBe(STATUS.INVALID_FIELD | DNR);
  });

  it('give a log page from an offset', async () => {
    const part = async (offset: number) => {
      const into = Buffer.alloc(16);
      const status = await admin.status({
        opcode: ADMIN.GET_LOG_PAGE,
        dwords: [LOG.SMART | (3 << 16), 0, offset],
        into,
      });
      return status === 0 ? into.readUInt16LE(1) : status;
    };
    expect(await part(0)).toBe(300);
    expect(await part(32)).toBe(0);
    expect(await part(513)).toBe(STATUS.INVALID_FIELD | DNR);
  });
});

describe('asynchronous events', () => {
  const request = () => admin.queue.execute({ opcode: ADMIN.ASYNC_EVENT_REQUEST });
  const turnOn = () => admin.send({ opcode: ADMIN.SET_FEATURES, dwords: [FEATURE.ASYNC_EVENT_CONFIGURATION, 0x100] });
  const change = (nsid: number) =>
    world.target.subsystem(NQN)!.addNamespace({ nsid, disk: new MemoryDevice(4096), uuid: Buffer.alloc(16, nsid) });
  const changed = async () => {
    const into = Buffer.alloc(4096);
    await admin.send({ opcode: ADMIN.GET_LOG_PAGE, dwords: [LOG.CHANGED_NAMESPACES | (1023 << 16)], into });
    return [into.readUInt32LE(0), into.readUInt32LE(4)];
  };

  it('tell of a namespace that came, and again only when its log page was read', async () => {
    await turnOn();
    const [first, second] = [request(), request()];
    change(2);
    expect((await world.until(first)).result).toBe(0x04_00_02n);
    change(3);
    let isTold = false;
    void second.then(() => {
      isTold = true;
    });
    await world.pass(1e9);
    expect(isTold).toBe(false);
    expect(await changed()).toEqual([2, 3]);
    expect((await world.until(second)).result).toBe(0x04_00_02n);
    expect(await changed()).toEqual([0, 0]);
  });

  it('stay away from a host that has not turned them on', async () => {
    let isTold = false;
    void request().then(() => {
      isTold = true;
    });
    change(2);
    await world.pass(1e9);
    expect(isTold).toBe(false);
  });

  it('refuse a fifth request, and end one that is aborted', async () => {
    const ended = Array.from({ length: 4 }, () => statusOf(request()));
    expect(await statusOf(world.until(request()))).toBe(STATUS.ASYNC_EVENT_LIMIT | DNR);
    expect(await admin.send({ opcode: ADMIN.ABORT, dwords: [99 << 16] })).toBe(1);
    // IDs are given from 0 on; Connect and the property were 0 and 1 when they ran, so the requests have the lowest.
    const results = await Promise.all(
      [0, 1, 2, 3].map((id) => admin.send({ opcode: ADMIN.ABORT, dwords: [id << 16] })),
    );
    expect(results).toContain(0);
    expect(await world.until(Promise.race(ended))).toBe(STATUS.ABORTED | DNR);
  });
});

describe('I/O commands', () => {
  const at = (lba: number, blocks: number, flags = 0) => [lba, 0, (flags | (blocks - 1)) >>> 0];

  it('compare and verify', async () => {
    const io = await ioQueue();
    const out = Buffer.alloc(4096, 7);
    expect(await io.status({ opcode: IO.WRITE, nsid: 1, dwords: at(8, 8), out })).toBe(0);
    expect(await io.status({ opcode: IO.COMPARE, nsid: 1, dwords: at(8, 8), out })).toBe(0);
    out[4095] ^= 1;
    expect(await io.status({ opcode: IO.COMPARE, nsid: 1, dwords: at(8, 8), out })).toBe(STATUS.COMPARE_FAILURE | DNR);
    expect(await io.status({ opcode: IO.VERIFY, nsid: 1, dwords: at(0, 4096) })).toBe(0);
    expect(await io.status({ opcode: IO.VERIFY, nsid: 1, dwords: at(BLOCKS - 1, 2) })).toBe(
      STATUS.LBA_OUT_OF_RANGE | DNR,
    );
  });

  it.each([
    [
      'a block beyond the end',
      { opcode: IO.READ, nsid: 1, dwords: at(BLOCKS, 1), into: Buffer.alloc(512) },
      STATUS.LBA_OUT_OF_RANGE,
    ],
    [
      'an address that would overflow',
      { opcode: IO.READ, nsid: 1, dwords: [0xffff_ffff, 0xffff_ffff, 0], into: Buffer.alloc(512) },
      STATUS.LBA_OUT_OF_RANGE,
    ],
    [
      'more than MDTS',
      { opcode: IO.READ, nsid: 1, dwords: at(0, 2049), into: Buffer.alloc(2049 * 512) },
      STATUS.INVALID_FIELD,
    ],
    [
      'data that is too short',
      { opcode: IO.WRITE, nsid: 1, dwords: at(0, 2), out: Buffer.alloc(512) },
      STATUS.SGL_LENGTH_INVALID,
    ],
    [
      'data that is too long',
      { opcode: IO.READ, nsid: 1, dwords: at(0, 1), into: Buffer.alloc(1024) },
      STATUS.SGL_LENGTH_INVALID,
    ],
    [
      'another namespace',
      { opcode: IO.READ, nsid: 2, dwords: at(0, 1), into: Buffer.alloc(512) },
      STATUS.INVALID_NAMESPACE,
    ],
    ['an unknown command', { opcode: 0x7e, nsid: 1 }, STATUS.INVALID_OPCODE],
  ])('refuse %s, and the queue goes on', async (_, request, status) => {
    const io = await ioQueue();
    expect(await io.status(request)).toBe(status | DNR);
    expect(await io.status({ opcode: IO.FLUSH, nsid: 0xffff_ffff })).toBe(0);
  });

  it('deallocate ranges, also where the host sends room for 256 of them, as Linux does', async () => {
    const io = await ioQueue();
    const out = Buffer.alloc(4096, 9);
    await io.send({ opcode: IO.WRITE, nsid: 1, dwords: at(0, 8), out });
    const trim = (bytes: number, count = 1) => {
      const ranges = Buffer.alloc(bytes);
      ranges.writeUInt32LE(8, 4);
      return io.status({ opcode: IO.DATASET_MANAGEMENT, nsid: 1, dwords: [count - 1, 4], out: ranges });
    };
    expect(await trim(16, 2)).toBe(STATUS.SGL_LENGTH_INVALID | DNR);
    expect(await trim(4096)).toBe(0);
    const into = Buffer.alloc(4096);
    await io.send({ opcode: IO.READ, nsid: 1, dwords: at(0, 8), into });
    expect(into.every((byte) => byte === 0)).toBe(true);
  });

  it('refuse what Connect alone may do a second time, and unknown fabrics commands', async () => {
    const io = await ioQueue();
    expect(await statusOf(io.connect({ qid: 2, cntlid: admin.cntlid }))).toBe(STATUS.COMMAND_SEQUENCE_ERROR | DNR);
    expect(await admin.status({ opcode: OP_FABRICS, nsid: FCTYPE.CONNECT + 0x70 })).toBe(STATUS.INVALID_OPCODE | DNR);
  });
});
