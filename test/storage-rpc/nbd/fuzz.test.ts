/** Both ends of the NBD protocol against bytes that nobody meant. */

import { expect, test } from 'vitest';
import { writeU32 } from '../../../src/core/bytes.js';
import { RoceError } from '../../../src/core/errors.js';
import { SeededRandom } from '../../../src/core/random.js';
import { ByteQueue } from '../../../src/storage-rpc/nbd/protocol/byte-queue.js';
import { ClientNegotiation } from '../../../src/storage-rpc/nbd/protocol/client-negotiation.js';
import { NbdClientSession } from '../../../src/storage-rpc/nbd/protocol/nbd-client-session.js';
import { refusalOf } from '../../../src/storage-rpc/nbd/protocol/nbd-request.js';
import { NbdServerSession } from '../../../src/storage-rpc/nbd/protocol/nbd-server-session.js';
import { Dice } from '../../support/dice.js';
import { repetitions } from '../../support/repetitions.js';
import { CMD, extendedRequest, goData, metaData, OPT, option, request, u16, u32, u64 } from './raw-client.js';

const SIZE = 1 << 20;
const EXPORTS = [{ name: 'disk0', description: 'fuzzed', sizeBytes: SIZE, blockBytes: 1 }];
const MESSAGES = repetitions(8_000, 40_000);
const SERVERS = MESSAGES / 2;
const ERR_INVALID = 0x80000003;
const ERR_TLS_REQD = 0x80000005;
/** What a client may make the server keep: one WRITE. */
const KEPT_BYTES_MAX = (32 << 20) + (1 << 17);

const OPTIONS = [...Object.values(OPT), 4, 0, 0xffff];
const COMMANDS = [...Object.values(CMD), 8, 99];

function below(dice: Dice, end: number): number {
  return dice.int(0, end - 1);
}

function someOption(dice: Dice): Buffer {
  const code = dice.pick(OPTIONS);
  const data = dice.pick([
    Buffer.alloc(0),
    Buffer.from('disk0'),
    goData('disk0', 0, 3),
    goData('nothing'),
    metaData('disk0', 'base:allocation', 'x:y'),
    Buffer.alloc(below(dice, 100)),
  ]);
  return option(code, data);
}

function someExtendedRequest(dice: Dice): Buffer {
  const type = dice.pick(COMMANDS);
  const length = dice.pick([0, 1, 512, 4096, below(dice, 70_000)]);
  const offset = dice.pick([0, SIZE - 512, SIZE, 2 ** 40, 2n ** 63n, below(dice, SIZE)]);
  const flags = dice.pick([0, 0, 1, 2, 4, 8, 16, below(dice, 65_536) & ~32]);
  if (type === CMD.BLOCK_STATUS && dice.chance(0.5)) {
    const data = dice.pick([Buffer.concat([u64(length), u32(dice.pick([1, 1, 2]))]), Buffer.alloc(below(dice, 100))]);
    return extendedRequest(type, offset, data.length, { flags, data });
  }
  if (dice.chance(type === CMD.WRITE ? 0.9 : 0.1)) {
    return extendedRequest(type, offset, length, { flags, data: Buffer.alloc(length, 7) });
  }
  return extendedRequest(type, offset, dice.pick([length, 2 ** 40, 2n ** 64n - 1n]), { flags });
}

function someRequest(dice: Dice): Buffer {
  const type = dice.pick(COMMANDS);
  const length = dice.pick([0, 1, 512, 4096, below(dice, 70_000)]);
  const offset = dice.pick([0, SIZE - 512, SIZE, 2 ** 40, below(dice, SIZE)]);
  return request(type, offset, length, {
    flags: dice.pick([0, 0, 1, 2, 4, 8, below(dice, 65_536)]),
    ...(type === CMD.WRITE && { data: Buffer.alloc(length, 7) }),
  });
}

/** Changes a few bytes, or cuts, or doubles. */
function mutate(dice: Dice, bytes: Buffer): Buffer {
  if (bytes.length === 0) return bytes;
  const kind = below(dice, 6);
  if (kind === 0) return bytes.subarray(0, below(dice, bytes.length));
  if (kind === 1) return Buffer.concat([bytes, bytes.subarray(below(dice, bytes.length))]);
  const changed = Buffer.from(bytes);
  for (let i = 0; i <= below(dice, 3); i++) changed[below(dice, Math.min(changed.length, 64))] = below(dice, 256);
  return changed;
}

/** A client's whole stream, of which some messages are wrong. */
function stream(dice: Dice): { readonly bytes: Buffer; readonly messages: number } {
  const messages = [u32(dice.chance(0.95) ? 3 : below(dice, 8))];
  for (let i = below(dice, 4); i > 0; i--) messages.push(someOption(dice));
  const isExtended = dice.chance(0.4);
  const form = isExtended ? OPT.EXTENDED : OPT.STRUCTURED;
  if (isExtended || dice.chance(0.7))
    messages.push(option(form), option(OPT.SET_META, metaData('', 'base:allocation')));
  messages.push(option(OPT.GO, goData('disk0')));
  for (let i = below(dice, 30); i > 0; i--) messages.push(isExtended ? someExtendedRequest(dice) : someRequest(dice));
  const harm = below(dice, 3);
  for (let i = 0; i < harm; i++) {
    const at = below(dice, messages.length);
    messages[at] = mutate(dice, messages[at]);
  }
  return { bytes: Buffer.concat(messages), messages: messages.length };
}

/** What the server makes of it: everything it sends, every request it would do, and how it ends. */
function serve(bytes: Buffer, cut: () => number): string[] {
  const heard: string[] = [];
  const session = new NbdServerSession(EXPORTS, (answer) => heard.push(Buffer.from(answer).toString('hex')));
  for (let at = 0; at < bytes.length; ) {
    const piece = bytes.subarray(at, at + cut());
    at += piece.length;
    session.push(piece);
    for (let upcoming = session.upcoming(); upcoming !== undefined; upcoming = session.upcoming()) {
      if (typeof upcoming === 'string') return [...heard, upcoming];
      const event = session.next();
      if (event === undefined) break;
      const { type, flags, offset, lengthBytes, payloadBytes, data } = event;
      expect(data.length === 0 || ([CMD.WRITE, CMD.BLOCK_STATUS].includes(type) && data.length === payloadBytes)).toBe(
        true,
      );
      heard.push(`${type} ${flags} ${offset} ${lengthBytes} ${refusalOf(event, session.agreement!)}`);
    }
    expect(session.bufferedBytes).toBeLessThan(KEPT_BYTES_MAX);
  }
  return heard;
}

test(`${MESSAGES} messages, many of them wrong: the server keeps its head, however the bytes are cut`, () => {
  const dice = new Dice(new SeededRandom(1).stream('nbd'));
  let messages = 0;
  let requests = 0;
  let closed = 0;
  while (messages < MESSAGES) {
    const client = stream(dice);
    messages += client.messages;
    const whole = serve(client.bytes, () => client.bytes.length);
    const inPieces = serve(client.bytes, () => 1 + below(dice, dice.pick([3, 100, 70_000])));
    expect(inPieces).toEqual(whole);
    requests += whole.filter((line) => line.includes(' ')).length;
    if (whole.at(-1) === 'close') closed++;
  }
  // The fuzzer reaches the transmission phase, and the server gives up on some.
  expect(requests).toBeGreaterThan(MESSAGES / 10);
  expect(closed).toBeGreaterThan(MESSAGES / 1000);
}, 60_000);

test(`${MESSAGES / 2} messages without STARTTLS: a server that requires TLS tells nothing, and takes no request`, () => {
  const dice = new Dice(new SeededRandom(4).stream('nbd'));
  const told = new Map<number, number>();
  for (let messages = 0; messages < MESSAGES / 2; ) {
    const client = stream(dice);
    messages += client.messages;
    const answers: Buffer[] = [];
    const session = new NbdServerSession(EXPORTS, (answer) => answers.push(Buffer.from(answer)), { tls: 'required' });
    session.push(client.bytes);
    expect(['starttls', 'close', undefined]).toContain(session.upcoming());
    expect(session.agreement).toBe(undefined);
    for (const answer of answers.slice(1)) {
      const code = answer.readUInt32BE(8);
      const type = answer.readUInt32BE(12);
      const isHeard = code === OPT.STARTTLS || code === OPT.ABORT;
      expect(isHeard ? [1, ERR_INVALID] : [ERR_TLS_REQD]).toContain(type);
      told.set(type, (told.get(type) ?? 0) + 1);
    }
  }
  expect(told.get(ERR_TLS_REQD)).toBeGreaterThan(MESSAGES / 100);
}, 60_000);

const REMOTE = {
  sizeBytes: SIZE,
  flags: 0x1ed,
  structuredReplies: true,
  extendedHeaders: false,
  allocationContextId: 1,
  blockBytes: 1,
  payloadBytesMax: 32 << 20,
};

/** An answer to the request with this cookie, right in form. */
function someReply(dice: Dice, isExtended: boolean, cookie: number, offset: number, length: number): Buffer {
  const chunk = (type: number, data: Buffer, flags = 1) =>
    isExtended
      ? Buffer.concat([u32(0x6e8a278c), u16(flags), u16(type), u64(cookie), u64(offset), u64(data.length), data])
      : Buffer.concat([u32(0x668e33ef), u16(flags), u16(type), u64(cookie), u32(data.length), data]);
  switch (below(dice, 6)) {
    case 0:
      return chunk(1, Buffer.concat([u64(offset), Buffer.alloc(length, 9)]));
    case 1:
      return chunk(2, Buffer.concat([u64(offset), u32(length)]));
    case 2:
      return chunk(0x8001, Buffer.concat([u32(5), u16(2), Buffer.from('no')]));
    case 3:
      return isExtended
        ? chunk(6, Buffer.concat([u32(1), u32(1), u64(length), u64(3)]))
        : chunk(5, Buffer.concat([u32(1), u32(length), u32(3)]));
    case 4:
      return Buffer.concat([u32(0x67446698), u32(dice.pick([0, 22])), u64(cookie)]);
    default:
      return Buffer.concat([
        chunk(1, Buffer.concat([u64(offset), Buffer.alloc(length >> 1, 9)]), 0),
        chunk(2, Buffer.concat([u64(offset + (length >> 1)), u32(length - (length >> 1))])),
      ]);
  }
}

test(`${MESSAGES / 2} replies, many of them wrong: the client takes them, or breaks off, and writes nowhere else`, () => {
  const dice = new Dice(new SeededRandom(2).stream('nbd'));
  let answered = 0;
  let broken = 0;
  for (let replies = 0; replies < MESSAGES / 2; ) {
    const isExtended = dice.chance(0.5);
    const session = new NbdClientSession({ ...REMOTE, extendedHeaders: isExtended });
    const memory = Buffer.alloc(3 * 4096, 0xee);
    const input = new ByteQueue();
    const requests = 1 + below(dice, 8);
    for (let cookie = 0; cookie < requests; cookie++) {
      const isRead = dice.chance(0.8);
      session.submit(
        {
          type: isRead ? CMD.READ : CMD.BLOCK_STATUS,
          offset: 4096 * cookie,
          lengthBytes: 4096,
          ...(isRead && { into: memory.subarray(4096, 8192) }),
        },
        () => answered++,
      );
    }
    try {
      for (let cookie = 0; cookie < requests; cookie++, replies++) {
        const reply = someReply(dice, isExtended, cookie, 4096 * cookie, 4096);
        input.push(dice.chance(0.3) ? mutate(dice, reply) : reply);
        session.receive(input);
      }
    } catch (error) {
      if (!(error instanceof RoceError)) throw error;
      expect(error.code).toBe('ERR_ROCE_MISMATCH');
      broken++;
      replies++;
    }
    for (const edge of [memory.subarray(0, 4096), memory.subarray(8192)])
      expect(edge.every((b) => b === 0xee)).toBe(true);
  }
  expect(answered).toBeGreaterThan(MESSAGES / 50);
  expect(broken).toBeGreaterThan(MESSAGES / 50);
}, 60_000);

test(`${SERVERS} servers that are none: the client says so, or waits`, () => {
  const dice = new Dice(new SeededRandom(3).stream('nbd'));
  const reply = (code: number, type: number, data = Buffer.alloc(0)) =>
    Buffer.concat([u64(0x0003e889045565a9n), u32(code), u32(type), u32(data.length), data]);
  const info = Buffer.alloc(12);
  writeU32(info, 6, SIZE);
  const good = [
    Buffer.concat([Buffer.from('NBDMAGICIHAVEOPT'), u16(3)]),
    reply(OPT.EXTENDED, 0x80000001),
    reply(OPT.STRUCTURED, 1),
    reply(OPT.SET_META, 4, Buffer.concat([u32(1), Buffer.from('base:allocation')])),
    reply(OPT.SET_META, 1),
    reply(OPT.GO, 3, info),
    reply(OPT.GO, 1),
  ];
  let agreed = 0;
  for (let n = 0; n < SERVERS; n++) {
    const messages: Buffer[] = [...good];
    const at = below(dice, messages.length);
    if (dice.chance(0.9)) messages[at] = mutate(dice, messages[at]);
    const input = new ByteQueue();
    const negotiation = new ClientNegotiation('disk0', () => {});
    try {
      for (const message of messages) {
        input.push(message);
        if (negotiation.advance(input) !== undefined) agreed++;
      }
    } catch (error) {
      if (!(error instanceof RoceError)) throw error;
    }
  }
  expect(agreed).toBeGreaterThan(SERVERS / 10);
});
