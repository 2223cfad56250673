/** Command capsules that no host sends, straight into the queues of a target: each is answered once, or ends its queue, and nothing stays behind. */

import { expect } from 'vitest';
import { type RandomSource, randomInt, SeededRandom } from '../../../src/core/random.js';
import { RefusedPeers } from '../../../src/core/refused-peers.js';
import { MemoryDevice } from '../../../src/storage-rpc/disk/memory-device.js';
import type { DataBuffer } from '../../../src/storage-rpc/sk/channel.js';
import { settle } from '../../../test/support/virtual-time.js';
import { EventQueue } from '../../lab/src/sim/event-queue.js';
import { virtualClock } from '../../lab/src/sim/virtual-clock.js';
import { NvmeCommand } from '../src/capsule.js';
import { CNTLID_DYNAMIC, writeConnect } from '../src/fabrics.js';
import { ADMIN, FCTYPE, IO, OP_FABRICS, PROPERTY } from '../src/opcodes.js';
import { writeSgl } from '../src/sgl.js';
import { NvmeTarget } from '../src/target.js';
import type { TargetConnection, TargetReply } from '../src/target-connection.js';
import { HOST_NQN, NQN, OTHER_NQN, unpredictable } from './world.js';

const DISK_BYTES = 1 << 20;
const ADMIN_OPCODES = [...Object.values(ADMIN), OP_FABRICS];
const IO_OPCODES = [...Object.values(IO), OP_FABRICS];
/** Every command may have data of any length; its bytes do not matter here. */
const SCRATCH = Buffer.alloc(DISK_BYTES);

/** What a target may do wrong, for the twins of the fuzz: each has to be found. */
export type Mistake = 'answers twice' | 'does not answer' | 'keeps a buffer' | 'keeps a capsule';
/** Every so many answers, buffers or capsules. */
const MISTAKE_EVERY = 50;

/** A connection without a network: capsules go in, answers are counted. */
class Wire implements TargetConnection {
  readonly transport = 'rdma';
  readonly remote = '192.0.2.1';
  readonly qid = undefined;
  readonly depthMax = 128;
  readonly external = 'keyed';
  onCapsule: TargetConnection['onCapsule'] = () => {};
  onFailure: TargetConnection['onFailure'] = () => {};
  hasFailed = false;
  buffersInUse = 0;
  capsulesInUse = 0;
  /** Command IDs under way. */
  readonly waiting = new Set<number>();
  /** Data that the target fetches. */
  pulled: Buffer = SCRATCH;
  /** Answers to commands that nobody sent: what is thrown at the target might be caught there. */
  readonly strayAnswers: number[] = [];
  readonly #mistake: Mistake | undefined;
  #turns = 0;

  constructor(mistake?: Mistake) {
    this.#mistake = mistake;
  }

  #errs(mistake: Mistake): boolean {
    return this.#mistake === mistake && ++this.#turns % MISTAKE_EVERY === 0;
  }

  send(sqe: Buffer, data: Uint8Array = SCRATCH.subarray(0, 0)): void {
    if (this.hasFailed) return; // As a connection that has failed: it reports nothing any more.
    this.waiting.add(sqe.readUInt16LE(2));
    this.capsulesInUse++;
    let isReleased = false;
    const release = () => {
      if (!isReleased && !this.#errs('keeps a capsule')) this.capsulesInUse--;
      isReleased = true;
    };
    this.onCapsule({ command: new NvmeCommand(sqe), data, isDamaged: false, release });
  }

  async buffer(bytes: number): Promise<DataBuffer> {
    this.buffersInUse++;
    const release = () => {
      if (!this.#errs('keeps a buffer')) this.buffersInUse--;
    };
    return { bytes: SCRATCH.subarray(0, bytes), release } as DataBuffer;
  }

  async pull(_command: NvmeCommand, place: { length: number }, into: DataBuffer): Promise<void> {
    this.pulled.copy(into.bytes, 0, 0, Math.min(place.length, this.pulled.length));
  }

  async reply({ completion }: TargetReply): Promise<void> {
    if (this.#errs('does not answer')) return;
    for (let times = this.#errs('answers twice') ? 2 : 1; times > 0; times--) {
      if (!this.waiting.delete(completion.id)) this.strayAnswers.push(completion.id);
    }
  }

  fail(): void {
    this.hasFailed = true;
    this.waiting.clear();
  }

  async close(): Promise<void> {}
}

function propertySet(sqe: Buffer, value: number): void {
  sqe.fill(0);
  sqe[0] = OP_FABRICS;
  sqe[4] = FCTYPE.PROPERTY_SET;
  sqe.writeUInt32LE(PROPERTY.CC, 44);
  sqe.writeUInt32LE(value, 48);
  writeSgl(sqe, { kind: 'none', length: 0 }, 'keyed');
}

/** A command as a host may send it, with some bytes spoilt. */
function someCommand(random: RandomSource, isAdmin: boolean, id: number): Buffer {
  const sqe = Buffer.alloc(64);
  const opcodes = isAdmin ? ADMIN_OPCODES : IO_OPCODES;
  sqe[0] = opcodes[randomInt(random, 0, opcodes.length - 1)];
  sqe.writeUInt32LE(1, 4);
  const blocks = randomInt(random, 1, 16);
  const lengths = [8, 16, 64, 512, 1024, 4096, 512 * blocks];
  const length = lengths[randomInt(random, 0, lengths.length - 1)];
  const isInCapsule = randomInt(random, 0, 3) === 0;
  writeSgl(
    sqe,
    isInCapsule
      ? { kind: 'capsule', offset: 0, length }
      : { kind: 'keyed', addr: 0x1000n, length, rkey: 7, invalidate: randomInt(random, 0, 1) === 0 },
    'keyed',
  );
  if (isAdmin) sqe.writeUInt32LE(randomInt(random, 0, 0x20) | ((length / 4 - 1) << 16), 40);
  else {
    sqe.writeUInt32LE(randomInt(random, 0, 2048), 40);
    sqe.writeUInt16LE(blocks - 1, 48);
  }
  for (let n = randomInt(random, 0, 4); n > 0; n--) sqe[randomInt(random, 0, 63)] = random.u32();
  if (isAdmin && randomInt(random, 0, 999) === 0) {
    propertySet(sqe, 0); // It turns the controller off, and with it the I/O queue.
  }
  sqe.writeUInt16LE(id, 2);
  return sqe;
}

/** Sends `count` commands to admin and I/O queues of a target, whose connections make a mistake if one is named. */
export async function fuzzCapsules(seed: number, count: number, mistake?: Mistake): Promise<{ ended: number }> {
  const events = new EventQueue();
  const random = new SeededRandom(seed).stream('capsules');
  const other = new MemoryDevice(DISK_BYTES);
  await other.write(0, Buffer.alloc(4096, 0x5a));
  const uuid = Buffer.alloc(16, 1);
  const target = new NvmeTarget({
    refusedPeers: new RefusedPeers('a host', undefined),
    subsystems: [
      { nqn: NQN, serial: '1', namespaces: [{ nsid: 1, disk: new MemoryDevice(DISK_BYTES), uuid }] },
      { nqn: OTHER_NQN, serial: '2', namespaces: [{ nsid: 1, disk: other, uuid }] },
    ],
    clock: virtualClock(events),
    firmware: '0',
    randomBytes: unpredictable,
  });
  const wires: Wire[] = [];

  async function connect(qid: number, cntlid: number): Promise<Wire> {
    const wire = new Wire(mistake);
    wires.push(wire);
    target.accept(wire);
    const sqe = Buffer.alloc(64);
    sqe[0] = OP_FABRICS;
    sqe[4] = FCTYPE.CONNECT;
    wire.pulled = writeConnect(sqe, {
      qid,
      entries: 32,
      noSqFlow: false,
      keepAliveMs: 0,
      hostId: Buffer.alloc(16, 1),
      cntlid,
      subnqn: NQN,
      hostnqn: HOST_NQN,
    });
    writeSgl(sqe, { kind: 'keyed', addr: 0n, length: 1024, rkey: 1, invalidate: false }, 'keyed');
    wire.send(sqe);
    await settle();
    wire.pulled = SCRATCH;
    return wire;
  }

  async function enable(wire: Wire): Promise<void> {
    const sqe = Buffer.alloc(64);
    propertySet(sqe, 0x0046_0001);
    wire.send(sqe);
    await settle();
  }

  let ended = 0;
  let pair: { admin: Wire; io: Wire } | undefined;
  let cntlid = 0;
  for (let sent = 0; sent < count; ) {
    if (pair === undefined || pair.admin.hasFailed || pair.io.hasFailed) {
      if (pair !== undefined) {
        ended++;
        pair.admin.onFailure(new Error('the host begins anew'));
        pair.io.onFailure(new Error('the host begins anew'));
        await settle();
        expect([pair.admin, pair.io].map(({ buffersInUse, capsulesInUse }) => [buffersInUse, capsulesInUse])).toEqual([
          [0, 0],
          [0, 0],
        ]);
      }
      const admin = await connect(0, CNTLID_DYNAMIC);
      cntlid++; // IDs are given in turn.
      await enable(admin);
      pair = { admin, io: await connect(1, cntlid) };
      expect(pair.io.waiting.size, 'the I/O queue is connected').toBe(0);
      expect(target.controllers).toBe(1);
    }
    // A queue has 32 entries: sometimes they are too many.
    const burst = randomInt(random, 0, 99) === 0 ? 100 : 24;
    for (let n = 0; n < burst; n++, sent++) {
      const isAdmin = randomInt(random, 0, 1) === 0;
      const wire = isAdmin ? pair.admin : pair.io;
      let id = sent & 0xffff;
      while (wire.waiting.has(id)) id = (id + 1) & 0xffff;
      const data = randomInt(random, 0, 1) === 0 ? SCRATCH.subarray(0, 8192) : undefined;
      wire.send(someCommand(random, isAdmin, id), data);
    }
    for (let n = 0; n < 8; n++) await settle();
    const stray = [...pair.admin.strayAnswers, ...pair.io.strayAnswers];
    expect(stray, 'answers to commands that nobody sent').toEqual([]);
    if (pair.admin.hasFailed || pair.io.hasFailed) continue;
    // What is left waits for an event.
    expect(pair.io.waiting.size).toBe(0);
    expect(pair.admin.waiting.size).toBeLessThanOrEqual(4);
    expect([pair.admin.buffersInUse, pair.io.buffersInUse]).toEqual([0, 0]);
  }
  await target.close();
  await settle();
  expect(target.controllers).toBe(0);
  const read = Buffer.alloc(4096);
  await other.read(0, 4096, read);
  expect(read.every((byte) => byte === 0x5a)).toBe(true);
  return { ended };
}
