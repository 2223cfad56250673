/** Programs in JavaScript have no compiler that tells them: the library does, by name, and never with a TypeError of its own inside. */

import { afterAll, beforeAll, expect, it } from 'vitest';
import { Access, connect, listen, openDevice, type RdmaDevice } from '../../src/index.js';

const ADDRESS = '127.65.2.1';
let device: RdmaDevice;
beforeAll(async () => {
  device = await openDevice({ address: ADDRESS });
});
afterAll(() => device.close());

/** What a program without types can pass. */
const anything = (value: unknown) => value as never;

it.each([
  ['openDevice()', () => openDevice(anything(undefined)), /needs an address/],
  ['openDevice with a misspelt option', () => openDevice(anything({ adress: ADDRESS })), /needs an address/],
  [
    'an unknown io',
    () => openDevice({ address: ADDRESS, io: anything('fast') }),
    /io is 'fast' \(it is one of auto, dgram, mmsg\)/,
  ],
  ['an unknown engine', () => openDevice({ address: ADDRESS, engine: anything('thread') }), /engine is 'thread'/],
  ['connect without a port', () => connect(device, anything({ host: ADDRESS })), /connect needs a host and a port/],
  ['listen without a port', () => listen(device, anything({})), /listen needs a host and a port/],
  [
    'an unknown recovery',
    () => listen(device, { port: 0, recovery: anything('gbn') }),
    /no recovery scheme 'gbn' \(there are go-back-n, /,
  ],
  [
    'a region of text',
    async () => (await device.createPd()).regMr(anything('text'), Access.LOCAL_WRITE),
    /pass a Buffer, or a number/,
  ],
  ['createQp({})', async () => (await device.createPd()).createQp(anything({})), /needs a completion queue/],
])('%s is refused with what is missing', async (_, call, message) => {
  await expect(call()).rejects.toMatchObject({
    code: expect.stringMatching(/^ERR_ROCE_(INVALID_ARGUMENT|UNKNOWN_NAME)$/),
    message: expect.stringMatching(message),
  });
});
