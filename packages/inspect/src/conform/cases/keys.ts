/** Cases about the lifetime of keys, and about an attacker who knows the numbers of a connection. */

import { RC_SEND_ONLY_INV } from 'rocev2/internal/packet';
import { ack, data, denied, memoryCase, reconnect, refused, send, silence, type TestCase, testCase } from '../step.js';
import { ping, read, write, writeMiddle } from './request-packets.js';

const UNTIL_BOUND_MS = 20;

export const KEY_CASES: readonly TestCase[] = [
  {
    name: 'invalidate/window',
    rules: [79],
    about: 'A SEND invalidates the key of a window. It worked before, and is refused from then on.',
    needs: ['memory', 'window', 'receives'],
    steps: ({ offer }) => [
      { do: 'pause', milliseconds: UNTIL_BOUND_MS },
      write(0, 8, { memory: 'window' }),
      ack(0, 1),
      send(RC_SEND_ONLY_INV, 1, { bytes: 8, fields: { invalidateRkey: offer!.window!.key } }),
      ack(1, 2),
      write(2, 8, { memory: 'window', seed: 2 }),
      denied(2),
    ],
  },
  testCase(
    'unknown-peer/one-packet',
    [103],
    'One packet with the right address, queue pair and PSN, and an opcode that is wrong there, ends the connection. A forged one would look the same.',
    ({ mtu }) => [ping(0), ack(0, 1), writeMiddle(1, mtu), refused(1), ping(1), silence],
  ),
  memoryCase(
    'unknown-peer/key',
    [104],
    'A key that one connection received works on the next one: keys are of the protection domain.',
    () => [
      write(0, 8),
      ack(0, 1),
      reconnect,
      write(0, 8, { memory: 'of the first connection', seed: 2 }),
      ack(0, 1),
      read(1, 8),
      data(1, 8, 2),
    ],
  ),
];
