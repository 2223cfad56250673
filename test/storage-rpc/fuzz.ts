/** Messages that no peer of ours sends: one connection is lost at most, others do not notice, and nothing stays behind. */

import { expect } from 'vitest';
import { EventQueue } from '../../packages/lab/src/sim/event-queue.js';
import { virtualClock } from '../../packages/lab/src/sim/virtual-clock.js';
import { crc32c } from '../../src/core/crc32c.js';
import { FairQueue } from '../../src/core/fair-queue.js';
import { type RandomSource, randomInt, SeededRandom } from '../../src/core/random.js';
import type { ClientSession } from '../../src/storage-rpc/sk/client-session.js';
import {
  requestInlineBytes,
  requestListBytes,
  type SkRequest,
  writeRequest,
} from '../../src/storage-rpc/sk/request.js';
import { TcpServerChannel } from '../../src/storage-rpc/sk/tcp-channels.js';
import type { ByteStream } from '../../src/storage-rpc/stream/byte-stream.js';
import { SU_TYPES, type SuType, writeSuHeader } from '../../src/storage-rpc/su/header.js';
import type { PipeEnd } from './sk/pipe.js';
import { Rig, readIo } from './sk/rig.js';
import { TwoEnds } from './su/two-ends.js';

type Spoil = (message: Buffer, random: RandomSource) => Buffer;

/** Ways to spoil a message whose header has its CRC in the last four of `headerBytes` bytes. */
function spoilers(headerBytes: number): readonly Spoil[] {
  const repair = (message: Buffer): Buffer => {
    if (message.length < headerBytes) return message;
    message.writeUInt32LE(crc32c(message.subarray(0, headerBytes - 4)), headerBytes - 4);
    return message;
  };
  const scribble: Spoil = (message, random) => {
    for (let n = randomInt(random, 1, 4); n > 0; n--) message[randomInt(random, 0, message.length - 1)] = random.u32();
    return message;
  };
  return [
    scribble,
    (message, random) => repair(scribble(message, random)),
    (message, random) => repair(scribble(message, random)),
    (message, random) => message.subarray(0, randomInt(random, 0, message.length - 1)),
    (message, random) => Buffer.concat([message, Buffer.alloc(randomInt(random, 1, 100), random.u32())]),
    (_, random) => Buffer.from(Array.from({ length: randomInt(random, 1, 120) }, () => random.u32() & 0xff)),
  ];
}

const SK_SPOILERS = spoilers(64);
const SU_SPOILERS = spoilers(40);
const SK_OPS_USED = ['READ', 'WRITE', 'FLUSH', 'TRIM', 'ZERO', 'PING', 'RESUME', 'STATUS'] as const;
/** Connections spoilt at a time, a message each. */
const CONNECTIONS = 100;

function someRequest(random: RandomSource): Buffer {
  const message = Buffer.alloc(64);
  const op = SK_OPS_USED[randomInt(random, 0, SK_OPS_USED.length - 1)];
  const request: SkRequest = {
    op,
    flags: 0,
    sessionLow: 1n,
    slot: op === 'PING' || op === 'RESUME' ? 0xffff : randomInt(random, 0, 127),
    slotSeq: randomInt(random, 0, 3),
    disk: 0,
    offset: randomInt(random, 0, 1 << 23),
    length: op === 'READ' ? randomInt(random, 0, 8192) : 0,
    descriptor: { addr: 0n, rkey: 0, length: 0 },
    dataCrc: random.u32(),
  };
  writeRequest(message, request, request.descriptor, request.dataCrc);
  return message;
}

interface Victim {
  readonly session: ClientSession;
  readonly stream: PipeEnd;
  open: boolean;
}

async function connectVictim(rig: Rig): Promise<Victim> {
  const session = await rig.connected('tcp', { idleNs: 1e15 });
  const victim: Victim = { session, stream: rig.pipe!.client, open: true };
  session.onLost = (channel) => {
    victim.open = false;
    void channel.close();
  };
  return victim;
}

/** Feeds `count` messages to a storage server, over as many connections as it takes. Returns how many connections that were. */
export async function fuzzStorageServer(count: number, seed: number): Promise<number> {
  const random = new SeededRandom(seed).stream('fuzz');
  const rig = await Rig.create();
  const healthy = await rig.connected('rdma');
  const victims: Victim[] = [];
  let connections = 0;
  for (let sent = 0; sent < count; sent += CONNECTIONS) {
    for (let i = 0; i < CONNECTIONS; i++) {
      if (victims[i]?.open !== true) {
        victims[i] = await connectVictim(rig);
        connections++;
      }
      const spoil = SK_SPOILERS[randomInt(random, 0, SK_SPOILERS.length - 1)];
      victims[i].stream.write([spoil(someRequest(random), random)]);
    }
    await rig.pass(100_000);
    if (sent % 10_000 === 0) await rig.until(healthy.submit(readIo(0, Buffer.alloc(4096))));
  }
  for (const { session } of victims) await rig.until(session.end(new Error('enough')));
  await rig.pass(1e6);
  expect([rig.server.connections, rig.pool.inUse]).toEqual([1, 0]);
  expect(healthy.transport).toBe('rdma');
  return connections;
}

/** Feeds `count` messages to readers of requests, each a fresh one; every one that gets through is whole. Returns how many did. */
export function fuzzRequestReader(count: number, seed: number): number {
  const random = new SeededRandom(seed).stream('fuzz reader');
  const clock = virtualClock(new EventQueue());
  let whole = 0;
  for (let n = 0; n < count; n++) {
    const stream: ByteStream = {
      onData: () => {},
      onClose: () => {},
      write: () => {},
      pause: () => {},
      resume: () => {},
      destroy: () => {},
    };
    const memory = new FairQueue({ clock, bytesMax: Number.POSITIVE_INFINITY });
    const channel = new TcpServerChannel(stream, { memory, clock });
    channel.onRequest = ({ request, list, inline }) => {
      expect(list.length + (inline?.length ?? 0)).toBe(requestListBytes(request) + requestInlineBytes(request));
      whole++;
    };
    const message = SK_SPOILERS[randomInt(random, 0, SK_SPOILERS.length - 1)](someRequest(random), random);
    const cut = randomInt(random, 0, message.length);
    stream.onData(message.subarray(0, cut));
    stream.onData(message.subarray(cut));
  }
  return whole;
}

function someSuMessage(random: RandomSource): Buffer {
  const message = Buffer.alloc(40 + randomInt(random, 0, 40), random.u32());
  const types = Object.keys(SU_TYPES) as SuType[];
  writeSuHeader(message, {
    type: types[randomInt(random, 0, types.length - 1)],
    flags: 0,
    msgSeq: randomInt(random, 2, 4),
    creditLimit: randomInt(random, 30, 80),
    streamOff: 0,
    dataLen: randomInt(random, 0, 64),
    dataCrc: random.u32(),
    slotLimit: randomInt(random, 0, 10),
  });
  return message;
}

/** Sends spoilt messages to one end of an sU connection until it ends. Returns how many it took; nothing wrong may be delivered. */
export async function fuzzSuConnection(seed: number): Promise<number> {
  const random = new SeededRandom(seed).stream('fuzz su');
  const ends = await TwoEnds.connected();
  const { qp } = ends.client.player;
  let sent = 0;
  while (ends.server.failure === undefined && qp.state === 'RTS' && sent < 100) {
    const inline = SU_SPOILERS[randomInt(random, 0, SU_SPOILERS.length - 1)](someSuMessage(random), random);
    qp.postSend({ opcode: 'SEND', inline });
    sent++;
    await ends.pass(50_000);
  }
  await ends.pass(1e9);
  expect(ends.server.failure).toBeDefined();
  expect(Buffer.concat(ends.server.received)).toHaveLength(0);
  expect([ends.server.pools.local.inUse, ends.server.pools.exposed.inUse]).toEqual([0, 0]);
  return sent;
}
