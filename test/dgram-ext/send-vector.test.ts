import { describe, expect, it, vi } from 'vitest';
import { equalBytes } from '../../src/core/bytes.js';
import { SeededRandom } from '../../src/core/random.js';
import { batchedUdpAvailable, openBatchedUdpPort } from '../../src/dgram-ext/index.js';
import { type LibC, libC } from '../../src/dgram-ext/libc.js';
import { SEND_AGAIN, SEND_DONE, SendVector } from '../../src/dgram-ext/send-vector.js';
import { nowNs } from '../../src/driver/system-clock.js';
import { Access, checkCompletion, type DeviceOptions, type RdmaDevice } from '../../src/index.js';
import { KeyTable, MEMORY_OK } from '../../src/memory/key-table.js';
import { MemoryRange } from '../../src/memory/memory-range.js';
import { IpAddress } from '../../src/packet/address.js';
import { type Port, TxBatch } from '../../src/port/datagram.js';
import { borrowPayload } from '../../src/qp/borrowed-payload.js';
import { collect, until } from '../contracts/port-contract.js';
import { devicesAt } from '../support/devices.js';

const A = IpAddress.parse('127.53.1.1');
const B = IpAddress.parse('127.53.1.2');
const random = new SeededRandom(14).stream('data');
const DATA = Uint8Array.from({ length: 200_000 }, () => random.u32() & 0xff);

/** Bytes before the data, of the data, and behind them; trains with a short end, and neighbours of which one borrows. */
interface Packet {
  readonly before: number;
  readonly data: number;
  readonly behind: number;
  readonly offset: number;
  readonly borrows: boolean;
}

const packet = (before: number, data: number, offset: number, borrows = true): Packet => ({
  before,
  data,
  behind: 4,
  offset,
  borrows,
});
const PACKETS = [
  packet(28, 4096, 0),
  ...Array.from({ length: 20 }, (_, i) => packet(12, 4096, 4096 * (i + 1))),
  packet(12, 2048, 90_001), // Ends its train, and begins where no word does.
  packet(16, 4096, 100_000, false),
  packet(16, 4096, 104_096),
  packet(16, 4096, 108_192, false),
  ...Array.from({ length: 35 }, (_, i) => packet(12, 2048, 110_000 + i)), // To the last slot of a batch.
];

/** Writes packets into the batch, as the engine does. Copied where they do not borrow; the gap of those that do holds rubbish. */
function fill(
  batch: TxBatch,
  packets: readonly Packet[],
  to: Pick<Port, 'address' | 'udpPort'>,
  from: Uint8Array,
): void {
  for (const { before, data, behind, offset, borrows } of packets) {
    const slot = batch.count;
    const start = batch.payloadOffset(slot);
    batch.slab.fill(slot + 1, start, start + before);
    if (borrows) {
      batch.borrow(before, from, offset, data);
      batch.slab.fill(0xee, start + before, start + before + data + behind);
    } else batch.slab.set(from.subarray(offset, offset + data), start + before);
    const end = borrows ? batch.lastWordOffset(slot) : start + before + data;
    batch.slab.fill(0x80 + slot, end, end + behind);
    batch.lengths[slot] = before + data + behind;
    batch.destinations[slot] = to.address;
    batch.destinationPorts[slot] = to.udpPort;
    batch.count++;
  }
}

function expected({ before, data, behind, offset }: Packet, slot: number): Uint8Array {
  const bytes = new Uint8Array(before + data + behind).fill(slot + 1, 0, before);
  bytes.set(DATA.subarray(offset, offset + data), before);
  return bytes.fill(0x80 + slot, before + data);
}

describe.skipIf(batchedUdpAvailable() !== undefined)('data that are sent without a copy (needs koffi on Linux)', () => {
  async function withPair(body: (a: Port, b: Port) => Promise<void>): Promise<void> {
    const a = openBatchedUdpPort({ nowNs, address: A, udpPort: 0, borrows: true });
    const b = openBatchedUdpPort({ nowNs, address: B, udpPort: 0 });
    try {
      await Promise.all([a.open(), b.open()]);
      await body(a, b);
    } finally {
      await Promise.all([a.close(), b.close()]);
    }
  }

  it.each([
    ['borrowed', PACKETS],
    ['copied', PACKETS.map((each) => ({ ...each, borrows: false }))],
  ])('are on the wire what they would be as copies: %s', (_, packets) =>
    withPair(async (a, b) => {
      const received = collect(b);
      const batch = a.beginBatch()!;
      fill(batch, packets, b, DATA);
      a.sendBatch(batch);
      await until(() => received.length === packets.length, 'all packets');
      packets.forEach((each, slot) => {
        expect(equalBytes(received[slot].payload, expected(each, slot)), `packet ${slot}`).toBe(true);
      });
      expect(batch.borrowedLengths.every((length) => length === 0)).toBe(true);
      expect(batch.borrowedFrom.every((bytes) => bytes.length === 0)).toBe(true); // The region may go away now.
    }),
  );

  /** A socket that takes `first` messages, and is full until `empty` is set. */
  function fullSocket(first: number) {
    const real = libC() as LibC;
    const socket = { isEmpty: false, taken: first };
    const lib: LibC = {
      ...real,
      sendmmsg: (fd, messages, count, flags) => {
        if (socket.isEmpty) return real.sendmmsg(fd, messages, count, flags);
        if (socket.taken === 0) return -1;
        const sent = real.sendmmsg(fd, messages, Math.min(count, socket.taken), flags);
        socket.taken -= sent;
        return sent;
      },
      errno: () => (socket.isEmpty ? real.errno() : 11),
    };
    return { lib, socket };
  }

  it.each([
    ['kept', true],
    ['not kept: the twin', false],
  ])('are copied when the socket is full, so that the packet cannot change any more: %s', async (_, keeps) => {
    await withPair(async (_a, b) => {
      const received = collect(b);
      const { lib, socket } = fullSocket(1);
      const region = DATA.slice();
      const vector = new SendVector(lib, 60, A, 64, true);
      fill(vector, PACKETS, b, region);
      vector.prepare();
      const fd = lib.socket(2, 2, 0);
      try {
        expect(vector.send(fd)).toBe(SEND_AGAIN);
        if (keeps) vector.keep();
        region.fill(0);
        socket.isEmpty = true;
        expect(vector.send(fd)).toBe(SEND_DONE);
      } finally {
        lib.close(fd);
      }
      await until(() => received.length === PACKETS.length, 'all packets');
      const whole = PACKETS.filter((each, slot) => equalBytes(received[slot].payload, expected(each, slot))).length;
      if (keeps) expect(whole).toBe(PACKETS.length);
      else expect(whole).toBeLessThan(PACKETS.length);
    });
  });

  describe('by a device', () => {
    const openA = devicesAt('127.53.1.3');
    const openB = devicesAt('127.53.1.4');
    const BYTES = 256 * 1024;

    async function endOf(device: RdmaDevice, memory: Uint8Array | number) {
      const pd = await device.createPd();
      const cq = await device.createCq(16);
      const qp = await pd.createQp({ sendCq: cq });
      const region = await pd.regMr(memory, Access.REMOTE_ALL);
      return { device, cq, qp, region };
    }

    type End = Awaited<ReturnType<typeof endOf>>;

    async function join({ qp }: End, peer: End): Promise<void> {
      const { address, udpPort } = peer.device.attributes;
      await qp.modify({ state: 'INIT', pkeyIndex: 0, port: 1, accessFlags: Access.REMOTE_ALL });
      await qp.modify({
        state: 'RTR',
        av: { address, udpPort },
        pathMtu: 4096,
        destQpn: peer.qp.qpn,
        rqPsn: 0,
        maxDestRdAtomic: 16,
        minRnrTimer: 12,
      });
      await qp.modify({ state: 'RTS', sqPsn: 0, timeout: 14, retryCnt: 7, rnrRetry: 7, maxRdAtomic: 16 });
    }

    async function pair(options: Partial<DeviceOptions>, memory: Uint8Array | number) {
      const near = await endOf(await openA({ io: 'mmsg', ...options }), memory);
      const far = await endOf(await openB({ io: 'mmsg' }), BYTES);
      await join(near, far);
      await join(far, near);
      return { near, far };
    }

    async function transfer(near: End, far: End, opcode: 'RDMA_WRITE' | 'RDMA_READ', meanwhile: () => void) {
      const { addr: remoteAddr, rkey } = far.region;
      near.qp.postSend({ opcode, sges: [near.region.sge()], remoteAddr, rkey });
      meanwhile(); // After the post, before the NIC's turn.
      checkCompletion(await near.cq.next());
    }

    it.each<[string, Partial<DeviceOptions>, () => Uint8Array | number, boolean]>([
      ['its own memory', {}, () => BYTES, true],
      ['memory of several threads', {}, () => new Uint8Array(new SharedArrayBuffer(BYTES)), false],
      ['a fault rule that never strikes', { loss: 'psn=0@1000' }, () => BYTES, false],
    ])(
      '%s: data that change behind the post are sent as they are then, in whole packets',
      async (_, options, memory, borrows) => {
        const borrow = vi.spyOn(TxBatch.prototype, 'borrow');
        try {
          const { near, far } = await pair(options, memory());
          const [from, to] = [near.region.bytes, far.region.bytes];
          from.set(DATA);
          await transfer(near, far, 'RDMA_WRITE', () => from.fill(0x5a, 0, 100_000));
          expect(equalBytes(to, from)).toBe(true);
          expect(borrow.mock.calls.length).toBe(borrows ? BYTES / 4096 : 0);
          borrow.mockClear();
          await transfer(near, far, 'RDMA_READ', () => to.fill(0xa5));
          expect(equalBytes(from, to)).toBe(true);
          expect(borrow.mock.calls.length).toBe(BYTES / 4096); // By the peer, which answers the READ.
          expect(far.device.counters().rx_icrc_errors + near.device.counters().rx_icrc_errors).toBe(0);
        } finally {
          borrow.mockRestore();
        }
      },
    );

    it('does not touch memory that was given to another thread', async () => {
      const memory = new Uint8Array(BYTES);
      const keys = new KeyTable(new SeededRandom(1).stream('keys'));
      const { key } = keys.register(1, memory, 0, 0, 0);
      const range = new MemoryRange();
      expect(keys.resolve(key, 1, -1, 0, 0, BYTES, 0, range)).toBe(MEMORY_OK);
      const batch = new SendVector(libC() as LibC, 1, A, 64, true);
      expect(borrowPayload(batch, range, 0, 4096, 12)).toBe(true);
      structuredClone(memory.buffer, { transfer: [memory.buffer] });
      expect(borrowPayload(batch, range, 0, 4096, 12)).toBe(false);
    });
  });
});
