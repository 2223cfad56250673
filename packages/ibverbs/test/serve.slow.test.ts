/** The NIC process as a server: who holds an address, a cache folder that cannot be used, and programs that send anything. */

import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { randomInt, SeededRandom } from '../../../src/core/random.js';
import { type LibC, libC } from '../../../src/dgram-ext/libc.js';
import { createRingMemory } from '../../../src/memory/ring/ring.js';
import { Segment } from '../../../src/port/shm/segment.js';
import { eventually } from '../../../test/support/eventually.js';
import { definedSymbols } from '../src/elf.js';
import { shimLibrary } from '../src/library.js';
import * as op from '../src/messages.js';
import { NicServer } from '../src/nic-server.js';
import { FRAME_BYTES, PS_TCP } from '../src/rdma-cm/layout.js';
import { holderOf } from '../src/socket-folder.js';
import { missing } from './rig.js';

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
      made = Segment.create(lib as LibC, bytes);
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
      const { handle: token } = await call(op.OP_HELLO, [op.PROTOCOL_VERSION, op.KIND_CONTEXT]);
      const rings: Segment[] = [];
      const offer = (depth: number, strideBytes: number) => {
        const one = ring(depth, strideBytes);
        rings.push(one);
        return [one.fd, one.memory.byteLength];
      };
      const place = new BigUint64Array(new ArrayBuffer(8)).fill(BigInt(token));
      const address = (lib as LibC).addressOf(new Uint8Array(place.buffer));
      expect((await call(op.OP_HELLO, [...offer(16, 4), address + 8])).errno).toBe(constants.errno.EOPNOTSUPP);
      expect((await call(op.OP_HELLO, [...offer(16, 4), address])).errno).toBe(0);
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

  it('is in the folder of temporary files: a home without write access', async ({ skip }) => {
    if (!(await isMade)) skip('libibverbs is not installed');
    vi.stubEnv('TMPDIR', folder);
    writeFileSync(join(folder, 'file'), '');
    const library = await shimLibrary({ XDG_CACHE_HOME: join(folder, 'file', 'cache') });
    expect(library.startsWith(join(folder, `rocev2-verbs-${process.getuid?.()}`))).toBe(true);
    vi.unstubAllEnvs();
  });
});

describe('the library, for systems that are not tried', () => {
  it('has the symbols and versions of a younger release of libibverbs', async ({ skip }) => {
    if (missing().length > 0) skip('no compiler');
    const younger = join(folder, 'libibverbs.so.1');
    const source = [
      ...['ibv_open_device', 'ibv_query_qp_data_in_order', 'ibv_of_a_younger_release', 'verbs_set_ops'],
    ].map((name) => `long ${name}(void) { return 0; }`);
    writeFileSync(join(folder, 'younger.c'), `${source.join('\n')}\nint verbs_allow_disassociate_destroy;\n`);
    const versions = [
      'IBVERBS_1.1 { global: ibv_open_device; };',
      'IBVERBS_1.14 { global: ibv_query_qp_data_in_order; };',
      'IBVERBS_1.18 { global: ibv_of_a_younger_release; };',
      'IBVERBS_PRIVATE_65 { global: verbs_set_ops; verbs_allow_disassociate_destroy; };',
    ];
    writeFileSync(join(folder, 'versions'), versions.join('\n'));
    const flags = ['-shared', '-fPIC', `-Wl,--version-script=${join(folder, 'versions')}`, '-o', younger];
    execFileSync('cc', [...flags, join(folder, 'younger.c')]);
    const library = await shimLibrary({ XDG_CACHE_HOME: folder }, younger);
    const byName = (a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1);
    const symbols = (path: string) => definedSymbols(readFileSync(path)).sort(byName);
    expect(symbols(library)).toEqual(symbols(younger));
  });

  it('is refused on another architecture', async () => {
    const here = Object.getOwnPropertyDescriptor(process, 'arch')!;
    Object.defineProperty(process, 'arch', { ...here, value: 's390x' });
    try {
      const message = expect.stringContaining('s390x');
      await expect(shimLibrary({})).rejects.toMatchObject({ code: 'ERR_ROCE_UNSUPPORTED', message });
    } finally {
      Object.defineProperty(process, 'arch', here);
    }
  });
});
