import { expect, test } from 'vitest';
import { playersOf } from './pingpong-game.js';

const LOCAL = '  local address:  LID 0x0000, QPN 0x000013, PSN 0xf14bdc, GID ::ffff:10.77.0.2\n';
const REMOTE = '  remote address: LID 0x0000, QPN 0x8b0f12, PSN 0x0dd66e, GID fd77::1\n';

test('who plays stands in what ibv_rc_pingpong prints', () => {
  expect(playersOf(`${LOCAL}${REMOTE}81920 bytes in 0.00 seconds = 250.14 Mbit/sec\n`)).toEqual({
    guest: { address: '10.77.0.2', qpn: 0x13, startPsn: 0xf14bdc },
    ours: { address: 'fd77::1', qpn: 0x8b0f12, startPsn: 0x0dd66e },
  });
});

test('a program that has not heard of the other end does not know', () => {
  expect(playersOf(LOCAL)).toBeUndefined();
  expect(playersOf('')).toBeUndefined();
});
