import { describe, expect, test } from 'vitest';
import { conversation, type Turn } from '../../../packages/inspect/test/audit/conversation.js';
import { golden } from '../../../packages/inspect/test/audit/golden.js';
import type { CapturedPacket } from '../../../src/port/capture/captured-packet.js';
import { decodeRoce } from '../../../src/port/capture/decoded-packet.js';
import { udpOf } from '../../../src/port/capture/udp-in-capture.js';
import { type Game, STANDS_STILL, StalledGame } from './stalled-game.js';

const FIRST = 0x00;
const MIDDLE = 0x01;
const LAST = 0x02;
const ONLY = 0x04;
const READ_REQUEST = 0x0c;
const ACKNOWLEDGE = 0x11;
const PSN_SEQUENCE_ERROR = 0x60;
const RNR_NAK = 0x2c;

/** The ends of the conversations in this file; both PSNs wrap after two packets. */
const GAME: Game = {
  ours: { address: '192.0.2.1', qpn: 0x22, startPsn: 0xfffffe },
  guest: { address: '192.0.2.2', qpn: 0x11, startPsn: 0xfffffe },
  client: 'guest',
  messages: 3,
};
const OURS_FIRST: Game = { ...GAME, client: 'ours' };

type Said = Omit<Turn, 'opcode' | 'psn'>;
/** The nth request packet of a message, from 0 on. */
const send = (opcode: number, nth: number, more: Said = {}): Turn => {
  const endsMessage = opcode === ONLY || opcode === LAST;
  return { opcode, psn: (0xfffffe + nth) & 0xffffff, bytes: endsMessage ? 4 : 256, ackReq: endsMessage, ...more };
};
const ack = (nth: number, more: Said = {}): Turn => send(ACKNOWLEDGE, nth, { bytes: 0, syndrome: 0x1f, ...more });
/** The same from the guest. */
const back = (turn: Turn): Turn => ({ ...turn, back: true });

/** What the verdict begins with, 30 s after the last packet. */
function finding(packets: readonly CapturedPacket[], game = GAME, silenceNs = 30_000_000_000n): string {
  const judge = new StalledGame(game);
  for (const packet of packets) judge.take(packet);
  return judge.verdict((packets.at(-1)?.timestampNs ?? 0n) + silenceNs).split('\n')[0]!;
}

const judged = (turns: readonly Turn[], game = GAME) => finding(conversation(turns), game);

/** Three rounds begun by the guest; the second message of either end has three packets. */
const ROUND_1 = [back(send(ONLY, 0)), ack(0), send(ONLY, 0), back(ack(0))];
const GUESTS_2 = [back(send(FIRST, 1)), back(send(MIDDLE, 2)), back(send(LAST, 3)), ack(3)];
const OURS_2 = [send(FIRST, 1), send(MIDDLE, 2), send(LAST, 3), back(ack(3))];
const ROUND_3 = [back(send(ONLY, 4)), ack(4), send(ONLY, 4), back(ack(4))];

describe('a game that is cut off', () => {
  const LETTERS = [
    [/^ours has not answered PSN .* of the guest, and the guest has not answered PSN /, 'b'],
    [/^ours has not answered PSN /, 'o'],
    [/^it is our turn/, 'O'],
    [/^the guest has not answered PSN /, 'g'],
    [new RegExp(`^${STANDS_STILL}`), 'G'],
    [/^the game is over/, '.'],
  ] as const;
  const letter = (text: string) => LETTERS.find(([pattern]) => pattern.test(text))?.[1] ?? text;
  const cuts = (packets: readonly CapturedPacket[], game: Game) =>
    Array.from({ length: packets.length + 1 }, (_, n) => letter(finding(packets.slice(0, n), game))).join('');

  test('is in the hands of who sends the next packet, wherever it is cut', () => {
    const whole = conversation([...ROUND_1, ...GUESTS_2, ...OURS_2, ...ROUND_3]);
    expect(cuts(whole, GAME)).toBe('GoOgGGGoOOOgGoOg.');
  });

  const CLIENT = { address: '10.77.0.2', qpn: 0x2f, startPsn: 0xbcf76e };
  const SERVER = { address: '10.77.0.3', qpn: 0x2e, startPsn: 0x2cfb22 };
  test.each([
    ['client', { ours: CLIENT, guest: SERVER, client: 'ours', messages: 5 }],
    ['server', { ours: SERVER, guest: CLIENT, client: 'guest', messages: 5 }],
  ] as const)('of two Soft-RoCEs, as if ours had been the %s', (role, game) => {
    const packets = golden('pingpong-rc-v4');
    // One letter a packet that is there, by message and acknowledgement. In the third round the server has sent its message before it acknowledged the client's.
    const asClient = ['OOOO', 'gGGGG', 'oOOOO', 'gGGGG', 'oOOOO', 'ggggb', 'oOOOO', 'gGGGG', 'oOOOO', 'gGGGG', 'o.'];
    const swapped = (text: string) => text.replace(/[oOgG]/g, (one) => 'gGoO'['oOgG'.indexOf(one)]!);
    const expected = asClient.join('');
    expect(cuts(packets, game)).toBe(role === 'client' ? expected : swapped(expected));
    const guest = game.guest.address;
    packets.forEach((packet, n) => {
      const next = decodeRoce(udpOf(packet)!, { number: n, timeNs: 0, interfaceId: 0 }, false);
      expect(next.source === guest ? 'gGb' : 'oOb').toContain(letter(finding(packets.slice(0, n), game)));
    });
  });
});

describe('Soft-RoCE stands still', () => {
  const ITS_TURN = [...ROUND_1, ...GUESTS_2, ...OURS_2];

  test('with its next message, with the first one of all, and in the middle of one', () => {
    expect(judged(ITS_TURN)).toBe(`${STANDS_STILL}, with a message`);
    expect(judged([])).toBe(`${STANDS_STILL}, with a message`);
    expect(judged([...ROUND_1, ...GUESTS_2.slice(0, 2)])).toBe(`${STANDS_STILL}, in a message`);
    expect(judged([send(ONLY, 0), back(ack(0))], OURS_FIRST)).toBe(`${STANDS_STILL}, with a message`);
  });

  test('after it has repeated what was acknowledged, and got the acknowledgement again', () => {
    const repeated = [back(send(MIDDLE, 2)), back(send(LAST, 3)), ack(3), ack(3)];
    expect(judged([...ROUND_1, ...GUESTS_2, ...repeated, ...OURS_2])).toMatch(STANDS_STILL);
  });

  test('as it was seen: an acknowledgement met its repetition of the whole message, it repeated three packets more, and then nothing', () => {
    const message = Array.from({ length: 40 }, (_, nth) => send(nth === 0 ? FIRST : nth === 39 ? LAST : MIDDLE, nth));
    const guests = message.map(back);
    const begun = [...guests, ...guests.slice(0, 35), ack(39)];
    const end = [
      ack(39),
      ack(39),
      back(ack(31)),
      back(ack(39)),
      guests[35]!,
      ack(39),
      ...guests.slice(36, 38),
      ack(39),
    ];
    expect(judged([...begun, ...message, ...end])).toBe(`${STANDS_STILL}, with a message`);
    expect(judged([...begun, ...message.slice(0, 39)])).toBe('it is our turn, in a message');
  });

  test('after ours has repeated, and after a packet that it refused came again', () => {
    expect(judged([...ITS_TURN, send(LAST, 3), back(ack(3))])).toMatch(STANDS_STILL);
    const refused = [send(FIRST, 1), send(LAST, 3), back(ack(2, { syndrome: PSN_SEQUENCE_ERROR }))];
    const again = [send(MIDDLE, 2), send(LAST, 3), back(ack(3))];
    expect(judged([...ROUND_1, ...GUESTS_2, ...refused, ...again])).toMatch(STANDS_STILL);
  });

  test('but not while it sends', () => {
    expect(finding(conversation(ITS_TURN), GAME, 1_000_000_000n)).toBe(
      'the guest does not stand still: it has just been sending',
    );
  });
});

describe('ours has to move', () => {
  test('when it owes an acknowledgement: of a message, of a packet in one, of one that came again', () => {
    expect(judged(ROUND_1.slice(0, 1))).toBe('ours has not answered PSN fffffe of the guest');
    expect(judged([...ROUND_1, back(send(FIRST, 1, { ackReq: true }))])).toBe(
      'ours has not answered PSN ffffff of the guest',
    );
    expect(judged([...ROUND_1, ...GUESTS_2, ...OURS_2, back(send(LAST, 3))])).toBe(
      'ours has not answered PSN 000001 of the guest',
    );
  });

  test('when its acknowledgement is one of an older packet, or has a wrong ICRC', () => {
    expect(judged([...ROUND_1, ...GUESTS_2.slice(0, 3), ack(2)])).toBe('ours has not answered PSN 000001 of the guest');
    const packets = conversation([...ROUND_1, ...GUESTS_2]);
    packets.at(-1)!.bytes[packets.at(-1)!.bytes.length - 1]! ^= 1;
    expect(finding(packets)).toBe('ours has not answered PSN 000001 of the guest');
  });

  test('when its message is missing, or the rest of it', () => {
    expect(judged([...ROUND_1, ...GUESTS_2])).toBe('it is our turn, with a message');
    expect(judged([...ROUND_1, ...GUESTS_2, ...OURS_2.slice(0, 2)])).toBe('it is our turn, in a message');
    expect(judged([], OURS_FIRST)).toBe('it is our turn, with a message');
  });

  test('when the guest has refused a packet, or was not ready for it', () => {
    const refused = (syndrome: number) => [...ROUND_1, ...GUESTS_2, send(FIRST, 1), back(ack(1, { syndrome }))];
    expect(judged(refused(PSN_SEQUENCE_ERROR))).toBe('ours has not sent PSN ffffff (NAK PSN_SEQUENCE_ERROR) again');
    expect(judged(refused(RNR_NAK))).toBe('ours has not sent PSN ffffff (RNR 0.64 ms) again');
  });

  test('when everything is there and it has not noticed', () => {
    expect(judged([...ROUND_1, ...GUESTS_2, ...OURS_2, ...ROUND_3])).toBe('the game is over: nobody has to move');
  });
});

describe('nobody is let off', () => {
  test('when the guest does not take what ours sends, or send again what ours refuses', () => {
    expect(judged([...ROUND_1, ...GUESTS_2, ...OURS_2.slice(0, 3)])).toBe(
      'the guest has not answered PSN 000001 of ours',
    );
    const refusal = [...ROUND_1, back(send(MIDDLE, 2)), ack(1, { syndrome: PSN_SEQUENCE_ERROR })];
    expect(judged(refusal)).toBe('the guest has not sent PSN ffffff (NAK PSN_SEQUENCE_ERROR) again');
  });

  test('when the capture is not whole', () => {
    const without = (n: number) => [...ROUND_1, ...GUESTS_2, ...OURS_2].filter((_, i) => i !== n);
    expect(judged(without(5))).toBe('the game cannot be judged: 1 packets of the guest never passed');
    expect(judged(without(6))).toBe(
      'the game cannot be judged: PSN 000001 of the guest was answered, and never passed',
    );
    expect(judged(without(10))).toBe('the game cannot be judged: PSN 000001 of ours was answered, and never passed');
  });

  test('when an end sends what is no part of the game', () => {
    expect(judged([...ROUND_1, back(send(READ_REQUEST, 1, { bytes: 0 }))])).toMatch(
      'the game cannot be judged: the guest has sent RC RDMA_READ_REQUEST',
    );
    expect(judged([back(send(ONLY, 0)), ack(0), back(send(ONLY, 1)), ack(1)])).toBe(
      'the game cannot be judged: the ends have not taken turns',
    );
    expect(judged([...ROUND_1, back(send(ONLY, -1))])).toMatch('which is before its first one');
  });
});

test('other games in the capture count for nothing, before it and behind', () => {
  const other = (turn: Turn): Turn => ({ ...turn, destQpn: turn.back ? 0x24 : 0x12 });
  const owing = [...ROUND_1, ...GUESTS_2.slice(0, 3)];
  const still = [...ROUND_1, ...GUESTS_2, ...OURS_2];
  expect(judged([...owing.map(other), ...still])).toMatch(STANDS_STILL);
  expect(judged([...still.map(other), ...owing])).toBe('ours has not answered PSN 000001 of the guest');
  expect(judged([...owing, ...still.map(other)])).toBe('ours has not answered PSN 000001 of the guest');
});

test('the verdict says how far either end has come, and when it sent last', () => {
  const judge = new StalledGame(GAME);
  for (const packet of conversation([...ROUND_1, back(send(FIRST, 1)), back(send(FIRST, 1))])) judge.take(packet);
  expect(judge.verdict(30_005_000_000n).split('\n').slice(1)).toEqual([
    'ours: 1 messages in 1 packets (0 sent again, 0 damaged), acknowledged to PSN fffffe, 1 answers, the last packet 30.003 s ago (RC SEND_ONLY PSN fffffe, packet 3)',
    'the guest: 1 messages in 2 packets (1 sent again, 0 damaged), acknowledged to PSN fffffe, 1 answers, the last packet 30.000 s ago (RC SEND_FIRST PSN ffffff, packet 6)',
  ]);
  expect(new StalledGame(GAME).verdict(0n)).toContain(
    'ours: 0 messages in 0 packets (0 sent again, 0 damaged), acknowledged none, 0 answers, no packet',
  );
});
