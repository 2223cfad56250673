/** Whether a namespace that a host finds again is the one that it used. */

import { describe, expect, it } from 'vitest';
import { expectSameNamespace } from '../src/host/expected-namespace.js';
import type { NamespaceIdentity } from '../src/host/nvme-host.js';
import { TcpWorld } from './world.js';

const USED: NamespaceIdentity = {
  nsid: 1,
  blockBytes: 512,
  sizeBytes: 1 << 20,
  readOnly: false,
  nguid: '00112233445566778899aabbccddeeff',
  eui64: '0'.repeat(16),
  uuid: '8899aabbccddeeff0011223344556677',
};
const NAMELESS: NamespaceIdentity = { ...USED, nguid: '0'.repeat(32), uuid: '' };

describe('a namespace that is found again', () => {
  it.each([
    ['has not changed', USED, {}],
    ['has grown', USED, { sizeBytes: 2 << 20 }],
    ['has got a name that it did not have', USED, { eui64: '1'.repeat(16) }],
    ['has no name, and the same size', NAMELESS, {}],
  ])('may be used if it %s', (_, used, change) => {
    expect(() => expectSameNamespace(used, { ...used, ...change })).not.toThrow();
  });

  it.each([
    ['another UUID', USED, { uuid: '1'.repeat(32) }],
    ['no UUID any more', USED, { uuid: '' }],
    ['another NGUID', USED, { nguid: '1'.repeat(32) }],
    ['another EUI64', { ...USED, eui64: '2'.repeat(16) }, { eui64: '1'.repeat(16) }],
    ['less room', USED, { sizeBytes: 1 << 19 }],
    ['other blocks', USED, { blockBytes: 4096 }],
    ['no name, and more room', NAMELESS, { sizeBytes: 2 << 20 }],
  ])('is another one with %s', (_, used, change) => {
    expect(() => expectSameNamespace(used, { ...used, ...change })).toThrow(
      expect.objectContaining({ code: 'ERR_ROCE_MISMATCH' }),
    );
  });

  it('says its names as the target gives them', async () => {
    const world = new TcpWorld();
    const host = await world.connect();
    const names = { nguid: '00112233445566778899aabbccddeeff', uuid: '00112233445566778899aabbccddeeff' };
    expect(await world.until(host.namespace(1))).toMatchObject({ ...names, eui64: '0'.repeat(16) });
  });
});
