/** The NIC process as a server: who holds an address, a cache folder that cannot be used, and programs that send anything. */

import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { randomInt, SeededRandom } from '../../../src/core/random.js';
import { libC } from '../../../src/dgram-ext/libc.js';
import { createRingMemory } from '../../../src/memory/ring/ring.js';
import { Segment } from '../../../src/port/shm/segment.js';
import { eventually } from '../../../test/support/eventually.js';
import { shimLibrary } from '../src/library.js';
import * as op from '../src/messages.js';
import { NicServer } from '../src/nic-server.js';
import { FRAME_BYTES, PS_TCP } from '../src/rdma-cm/layout.js';
import { holderOf } from '../src/socket-folder.js';

const ADDRESS = '127.0.42.5';
const lib = libC();
const SEEDS = [1, 2, 3];
const MESSAGES = 60;
const CM_MESSAGES = 60;
/** A message must be answered by then, also on a busy machine: a test that waits longer has found a loop. */
const ANSWER_MS = 20_000;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rocev2-verbs-serve-'));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** A program on a socket of the NIC process, which sends one message at a time. */
class RawProgram {
  readonly #socket: Socket;
  answerBytes = op.MESSAGE_BYTES;
  #received: Buffer = Buffer.alloc(0);
  #resolve: (answer: Buffer | undefined) => void = () => {};

  constructor(path: string) {
    this.#socket = connect(path);
    this.#socket.on('error', () => {}); // Its end follows.
    this.#socket.on('close', () => this.#resolve(undefined));
    this.#socket.on('data', (bytes) => {
      this.#received = Buffer.concat([this.#received, bytes]);
      this.#take();
    });
  }

  #take(): void {
    if (this.#received.length < this.answerBytes) return;
    const answer = this.#received.subarray(0, this.answerBytes);
    this.#received = this.#received.subarray(this.answerBytes);
    this.#resolve(answer);
  }

  /** Undefined: the NIC process has ended the connection. */
  send(bytes: Buffer): Promise<Buffer | undefined> {
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(new Error('no answer')), ANSWER_MS); // timer: ends a wait for no answer
      this.#resolve = (answer) => {
        clearTimeout(late);
        resolve(answer);
      };
      this.#socket.write(bytes);
    });
  }

  close(): void {
    this.#socket.destroy();
  }
}

function message(operation: number, args: readonly (number | bigint)[]): Buffer {
  const one = new op.NicMessage(Buffer.alloc(op.MESSAGE_BYTES));
  one.bytes.writeUInt32LE(operation);
  args.forEach((value, i) => void one.set(i, value));
  return one.bytes;
}

const VALUES = [0, 1, 2, 7, 64, 255, 65_536, 2 ** 31, 2 ** 32, 2 ** 53 - 1, 2n ** 53n, 2n ** 64n - 1n];

/** A ring as the library makes it. */
function ring(depth: number, strideBytes: number): Segment {
  let made: Segment | undefined;
  createRingMemory(
    (bytes) => {
      made = Segment.create(lib as Exclude<typeof lib, string>, bytes);
      return made.memory;
    },
    depth,
    strideBytes,
  );
  return made!;
}

describe.skipIf(typeof lib === 'string')('a NIC process (needs koffi on Linux)', () => {
  let server: NicServer;
  let path: string;
  beforeEach(async () => {
    path = join(folder, 'nic.sock');
    server = await NicServer.open(path, { address: ADDRESS, io: 'dgram' });
  });
  afterEach(() => server.close());

  it('is named to those that find its address served', async () => {
    expect(await holderOf(path)).toBe(process.pid);
    expect(await holderOf(join(folder, 'nobody.sock'))).toBeUndefined();
  });

  it.each(SEEDS)(
    'answers every message of a program that sends anything, and frees all that it had (seed %i)',
    async (seed) => {
      const random = new SeededRandom(seed).stream('messages');
      const below = (limit: number) => randomInt(random, 0, limit - 1);
      const program = new RawProgram(path);
      const call = async (operation: number, args: readonly (number | bigint)[]) => {
        const answer = await program.send(message(operation, args));
        expect(answer, `operation ${operation} with ${args}`).toBeDefined();
        const { bytes } = new op.NicMessage(answer!);
        return { errno: bytes.readUInt32LE(), handle: Number(new op.NicMessage(bytes).long(0)) };
      };
      const made: number[] = [];
      const make = async (operation: number, args: readonly (number | bigint)[]) => {
        const { errno, handle } = await call(operation, args);
        expect(errno).toBe(0);
        made.push(handle);
        return handle;
      };
      await call(op.OP_HELLO, [op.PROTOCOL_VERSION, op.KIND_CONTEXT]);
      const rings: Segment[] = [];
      const offer = (depth: number, strideBytes: number) => {
        const one = ring(depth, strideBytes);
        rings.push(one);
        return [one.fd, one.memory.byteLength];
      };
      const pd = await make(op.OP_ALLOC_PD, []);
      const cq = await make(op.OP_CREATE_CQ, [...offer(16, 64), 1, 0]);
      const qps: number[] = [];
      for (const type of [2, 3, 4]) {
        qps.push(await make(op.OP_CREATE_QP, [pd, type, cq, cq, 0, ...offer(16, 128), ...offer(64, 32), 0]));
      }
      const value = () => {
        const kind = below(4);
        if (kind === 0) return made[below(made.length)];
        if (kind === 1) return rings[below(rings.length)].fd;
        return kind === 2 ? VALUES[below(VALUES.length)] : below(2 ** 31);
      };
      for (let i = 0; i < MESSAGES; i++) await call(below(22), Array.from({ length: 22 }, value));
      // Indices that the rings cannot hold, before the queue pairs are destroyed.
      for (const { memory } of rings) {
        const header = new Uint32Array(memory, 0, 2);
        header[below(2)] = 2 ** 31 + below(2 ** 31);
      }
      for (const qp of qps) await call(op.OP_DESTROY_QP, [qp]);
      program.close();
      for (const one of rings) one.close();

      const manager = new RawProgram(path);
      await manager.send(message(op.OP_HELLO, [op.PROTOCOL_VERSION, op.KIND_CM]));
      manager.answerBytes = FRAME_BYTES;
      for (let i = 0; i < CM_MESSAGES; i++) {
        const frame = Buffer.from(Uint8Array.from({ length: FRAME_BYTES }, () => (below(3) === 0 ? below(256) : 0)));
        frame.writeUInt32LE(below(20), 0);
        frame.writeUInt32LE(below(3) === 0 ? random.u32() : 290, 4);
        if (below(2) === 0) frame.writeUInt16LE(PS_TCP, 24);
        expect(await manager.send(frame), frame.toString('hex')).toBeDefined();
      }
      manager.close();
      await eventually(() => server.programs === 0 && server.listeners === 0);
      expect(server.objects).toBe(0);
      expect(await holderOf(path)).toBe(process.pid);
    },
  );
});

describe('the library, where it cannot be written', () => {
  const isMade = shimLibrary({ XDG_CACHE_HOME: tmpdir(), CC: '/nowhere/cc' }).then(
    () => true,
    ({ code }) => code !== 'ERR_ROCE_NOT_FOUND',
  );

  it('is refused with the place to change: a folder that is a file, a disk without space', async ({ skip }) => {
    if (!(await isMade)) skip('libibverbs is not installed');
    const hint = expect.stringContaining('XDG_CACHE_HOME');
    const refusal = { code: 'ERR_ROCE_IO', hint };
    writeFileSync(join(folder, 'rocev2-verbs'), '');
    await expect(shimLibrary({ XDG_CACHE_HOME: folder })).rejects.toMatchObject(refusal);
    const compiler = join(folder, 'cc');
    writeFileSync(compiler, '#!/bin/sh\necho "No space left on device" >&2; exit 1\n');
    chmodSync(compiler, 0o755);
    const cache = join(folder, 'cache');
    await expect(shimLibrary({ XDG_CACHE_HOME: cache, CC: compiler })).rejects.toMatchObject(refusal);
  });
});
