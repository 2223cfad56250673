/** Mapped regions between processes and threads: each rule with a planted mutant that breaks it. */

import { existsSync, mkdtempSync, readFileSync, readlinkSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { batchedUdpAvailable } from '../../src/dgram-ext/index.js';
import { SystemMemoryMapping } from '../../src/driver/system-memory-mapping.js';
import { Access, type Connection, connect, listen, openDevice, type RdmaDevice } from '../../src/index.js';
import { CopyView } from '../../src/memory/mapped/copy-view.js';
import { QueuePair } from '../../src/verbs/queue-pair.js';
import { Program } from '../e2e/executable.js';
import { eventually } from '../support/eventually.js';

const [OWNER, REQUESTER, THIRD] = ['127.53.14.1', '127.53.14.2', '127.53.14.3'];
const BYTES = 16_384;
const isBuilt = existsSync(fileURLToPath(new URL('../../build/complete', import.meta.url)));

const closing: Array<() => unknown> = [];
afterEach(async () => {
  vi.restoreAllMocks();
  for (const close of closing.splice(0).reverse()) await close();
});

function start(script: string, args: object): Program {
  const program = Program.fixture('mapped-peer.mjs', JSON.stringify({ script, address: REQUESTER, ...args }));
  closing.push(() => program.kill('SIGKILL'));
  return program;
}

/** The next JSON line with this field. */
async function line<T>(program: Program, field: string): Promise<T> {
  const [, text] = await program.writes('stdout', new RegExp(`(\\{[^\\n]*"${field}":.*\\})\\n`));
  return JSON.parse(text) as T;
}

async function ownerHere() {
  const device = await openDevice({ address: OWNER, udpPort: 0, io: 'auto', mapRegions: true });
  closing.push(() => device.close());
  const memory = device.allocate(BYTES);
  const listener = await listen(device, { host: OWNER, port: 0, region: memory, timeout: 14 });
  closing.push(() => listener.close());
  const accepted = listener.accept();
  accepted.catch(() => {});
  return { device, memory, accepted, where: { host: OWNER, port: listener.port } };
}

const openedRegion = ({ qp }: Connection) => [...qp.pd.regions.values()].find(({ length }) => length === BYTES)!;
const turns = async (count: number) => {
  for (let n = 0; n < count; n++) await new Promise(setImmediate);
};

async function segmentOf(device: RdmaDevice, memory: Buffer) {
  const fd = device.grants!.mapping.descriptorOf(memory.buffer)!;
  return { pid: process.pid, fd, bytes: memory.buffer.byteLength };
}

describe.skipIf(!isBuilt || batchedUdpAvailable() !== undefined)('mapped regions (need koffi and a build)', () => {
  describe('whose requester is in the middle of a copy', () => {
    async function copying(more: object = {}, copyLimitNs?: number) {
      const folder = mkdtempSync(join(tmpdir(), 'rocev2-mapped-'));
      closing.push(() => rmSync(folder, { recursive: true }));
      const release = join(folder, 'release');
      const owner = await ownerHere();
      if (copyLimitNs !== undefined) owner.device.grants!.copyLimitNs = copyLimitNs;
      const requester = start('copy', { ...owner.where, release, ...more });
      const region = openedRegion(await owner.accepted);
      await line(requester, 'copying');
      let isClosed = false;
      const closed = region.close().then(() => {
        isClosed = true;
      });
      closed.catch(() => {});
      await turns(20);
      return { ...owner, region, requester, closed, isClosed: () => isClosed, go: () => writeFileSync(release, '') };
    }

    it('are deregistered after its end, and then never change', async () => {
      const { memory, requester, closed, isClosed, go } = await copying();
      expect(isClosed()).toBe(false);
      expect([memory[0], memory[BYTES - 1]]).toEqual([7, 0]);
      go();
      await closed;
      expect(memory.every((byte) => byte === 7)).toBe(true);
      memory.fill(1);
      expect(await line(requester, 'first')).toEqual({ first: 'done', written: 1 });
      const second = await line<{ second: string; written: number }>(requester, 'second');
      expect(second.second).toContain('remote access error');
      expect(second.written).toBe(1);
      expect(memory.every((byte) => byte === 1)).toBe(true);
    });

    it('are not deregistered while it is stopped, which the error says, but withdrawn', async () => {
      const { memory, region, requester, closed, go } = await copying({}, 50e6);
      requester.kill('SIGSTOP');
      const { pid } = requester.process;
      await expect(closed).rejects.toMatchObject({ code: 'ERR_ROCE_BUSY', message: expect.stringContaining(`${pid}`) });
      go();
      requester.kill('SIGCONT');
      await eventually(() =>
        region.close().then(
          () => true,
          () => false,
        ),
      );
      memory.fill(1);
      expect(await line(requester, 'second')).toMatchObject({ written: 1 });
      expect(memory.every((byte) => byte === 1)).toBe(true);
    });

    it('mutant: copies without a mark are found', async () => {
      const { closed, isClosed, go } = await copying({ mutant: 'noMark' });
      await closed;
      expect(isClosed()).toBe(true);
      go();
    });

    it('are deregistered when it is killed', async () => {
      const hasEnded = vi.spyOn(SystemMemoryMapping.prototype, 'hasEnded');
      const { requester, closed, isClosed } = await copying();
      // Mutant: the owner does not learn that the process has ended.
      hasEnded.mockReturnValue(false);
      requester.kill('SIGKILL');
      await requester.ended();
      const asked = hasEnded.mock.calls.length;
      await eventually(() => hasEnded.mock.calls.length > asked + 3);
      expect(isClosed()).toBe(false);
      hasEnded.mockRestore();
      await closed;
    });
  });

  describe('whose owner is killed in the middle of a copy', () => {
    async function killed() {
      const owner = start('owner', { address: OWNER });
      const { port } = await line<{ port: number }>(owner, 'port');
      const device = await openDevice({ address: REQUESTER, udpPort: 0, io: 'auto', mapRegions: true });
      closing.push(() => device.close());
      const connection = await connect(device, { host: OWNER, port, timeout: 14, retryCnt: 2 });
      await line(owner, 'accepted');
      const local = await connection.register(BYTES, Access.LOCAL_WRITE);
      await connection.write(local);
      const { pid } = owner.process;
      const { copyTo } = CopyView.prototype;
      vi.spyOn(CopyView.prototype, 'copyTo').mockImplementationOnce(function (this: CopyView, offset, to, at, length) {
        copyTo.call(this, offset, to, at, length / 2);
        process.kill(pid!, 'SIGKILL');
        while (!/^\d+ \(.*\) [ZX]/.test(readFileSync(`/proc/${pid}/stat`, 'latin1')));
        copyTo.call(this, offset + length / 2, to, at + length / 2, length / 2);
      });
      await connection.write(local); // The death is not known yet; the memory is there as long as it is mapped.
      return { owner, device, connection, local };
    }

    it('no later copy is reported as success, and the requester says why', async () => {
      const { owner, device, connection, local } = await killed();
      expect(device.counters().direct_writes).toBe(2);
      await owner.ended();
      await connection.peerClosed();
      await expect(connection.write(local)).rejects.toThrow(/retry.*the peer process is gone/);
      expect(device.counters().direct_writes).toBe(2);
    });

    it('a program that does not let the event loop turn learns it after 50 ms', async () => {
      const { device, connection, local } = await killed();
      const { addr, rkey } = connection.remote!;
      const { qp } = connection;
      // The verbs are used within one call: sockets and timers have no turn.
      const end = performance.now() + 5000;
      const direct = () => device.counters().direct_writes;
      let before = -1;
      // Nobody polls: the send queue holds 128 of them, which is 640 ms.
      for (let next = performance.now(); direct() !== before && performance.now() < end; next += 5) {
        while (performance.now() < next);
        before = direct();
        qp.postSend({ opcode: 'RDMA_WRITE', sges: [local.sge()], remoteAddr: addr, rkey, signaled: false });
      }
      expect(performance.now()).toBeLessThan(end);
    });

    it('mutant: a requester that does not learn it is found', async () => {
      vi.spyOn(SystemMemoryMapping.prototype, 'hasEnded').mockReturnValue(false);
      vi.spyOn(QueuePair.prototype, 'unmapPeer').mockImplementation(() => {});
      const { connection, local } = await killed();
      await connection.peerClosed();
      await connection.write(local);
      vi.restoreAllMocks();
    });
  });

  describe('that another thread observes', () => {
    const observed = async (engine: string, mutant?: string) => {
      const args = { script: 'observed', addresses: [OWNER, REQUESTER], engine, rounds: 200, mutant };
      const program = Program.fixture('mapped-threads.mjs', JSON.stringify(args));
      closing.push(() => program.kill('SIGKILL'));
      const counts = await line<Record<string, number>>(program, 'direct');
      expect(counts['direct']).toBe(400);
      return counts;
    };

    it.each(['inline', 'worker'])(
      'show the data of a WRITE before a later WRITE, and before its completion; engine %s',
      async (engine) => {
        const counts = await observed(engine);
        expect(counts).toMatchObject({ stale: 0, early: 0 });
        expect(counts['completions']).toBeGreaterThan(20);
      },
    );

    it.each([
      ['reordered', 'stale'],
      ['early', 'early'],
    ])('mutant: %s copies are found', async (mutant, count) => {
      expect((await observed('inline', mutant))[count]).toBeGreaterThan(0);
    });

    it.each([undefined, 'plainAdd'])('add atomically by copies and by packets at once; mutant %s', async (mutant) => {
      const args = { script: 'atomics', addresses: [OWNER, REQUESTER, THIRD], engine: 'inline', rounds: 200, mutant };
      const program = Program.fixture('mapped-threads.mjs', JSON.stringify(args));
      closing.push(() => program.kill('SIGKILL'));
      const { lost, direct, packets } = await line<Record<string, number>>(program, 'lost');
      expect(packets).toBe(0);
      expect(direct).toBeGreaterThan(100);
      if (mutant === undefined) expect(lost).toBe(0);
      else expect(lost).toBeGreaterThan(0);
    });
  });

  it.each([
    [undefined, 'r--s'],
    ['writable', 'rw-s'],
  ])('without remote write access are mapped read-only; mutant %s: %s', async (mutant, mode) => {
    const { device, accepted, where } = await ownerHere();
    const memory = device.allocate(BYTES);
    const { fd } = await segmentOf(device, memory);
    const inode = String(statSync(`/proc/self/fd/${fd}`).ino);
    expect(readlinkSync(`/proc/self/fd/${fd}`)).toContain('memfd:rocev2-region');
    const requester = start('readOnly', { ...where, inode, mutant });
    const server = await accepted;
    const region = await server.qp.pd.regMr(memory, Access.REMOTE_READ);
    const offer = Buffer.alloc(12);
    offer.writeBigUInt64LE(region.addr);
    offer.writeUInt32LE(region.rkey, 8);
    await server.send(offer);
    const seen = await line<Record<string, unknown>>(requester, 'modes');
    expect(seen).toMatchObject({ reads: 1, written: 0, modes: [mode] });
    expect(seen['write']).toContain('remote access error');
    expect(memory.every((byte) => byte === 0)).toBe(true);
  });

  const isRoot = process.getuid?.() === 0;
  it.skipIf(!isRoot).each([
    [true, { mapsRegion: false, sharesMemory: false }, { written: 0, opens: false }],
    [false, { mapsRegion: true, sharesMemory: true }, { written: 1, opens: true }],
  ])('are not mapped by another user (only root can start one): %s', async (changes, agreed, seen) => {
    const { device, memory, where } = await ownerHere();
    const requester = start('otherUser', { ...where, changes, segment: await segmentOf(device, memory) });
    expect(await line(requester, 'mapsRegion')).toEqual(agreed);
    expect(await line(requester, 'opens')).toEqual({ write: 'done', ...seen });
  });
});
