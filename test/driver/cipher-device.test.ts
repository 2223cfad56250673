/** Which AES-GCM a device says it protects packets with, and a variable that forces one. */

import { afterEach, describe, expect, it, vi } from 'vitest';
import { builtApi, isBuilt } from '../support/built-api.js';

const ADDRESS = '127.0.5.12';
const psk = { identity: 'alice', key: new Uint8Array(32).fill(1) };

afterEach(() => {
  vi.unstubAllEnvs();
});

describe.runIf(isBuilt).each(['inline', 'worker'] as const)('the cipher of a device, engine %s', (engine) => {
  async function described(forced: string): Promise<string> {
    vi.stubEnv('ROCEV2_CIPHER', forced);
    const { openDevice } = await builtApi();
    const device = await openDevice({ address: ADDRESS, engine, udpPort: 0, secure: { psk } });
    try {
      return device.portDescription;
    } finally {
      await device.close();
    }
  }

  it('is part of the description: the fastest, or the one that the variable names', async () => {
    expect(await described('')).toMatch(
      /, packets protected \(require\) by AES-GCM of (ipsec-mb \(\w+\)|openssl|node:crypto)(,|$)/,
    );
    expect(await described('openssl')).toMatch(/ by AES-GCM of openssl(,|$)/);
    expect(await described('node:crypto')).toMatch(/ by AES-GCM of node:crypto(,|$)/);
  });

  it('is refused by name when the variable names none', async () => {
    await expect(described('aes')).rejects.toMatchObject({
      code: 'ERR_ROCE_UNKNOWN_NAME',
      message: expect.stringContaining("ROCEV2_CIPHER is 'aes' (it is one of ipsec-mb, openssl, node:crypto)"),
    });
  });
});

it.runIf(isBuilt)('without native calls it is that of Node', async () => {
  const { openDevice } = await builtApi();
  const device = await openDevice({ address: ADDRESS, native: 'off', udpPort: 0, secure: { psk } });
  expect(device.portDescription).toMatch(/ by AES-GCM of node:crypto(,|$)/);
  await device.close();
});
