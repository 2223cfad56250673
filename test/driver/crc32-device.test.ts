/** Which CRC-32 a device says it uses, and a variable that forces one. */

import { afterEach, describe, expect, it, vi } from 'vitest';
import { builtApi, isBuilt } from '../support/built-api.js';

const ADDRESS = '127.0.5.11';

afterEach(() => {
  vi.unstubAllEnvs();
});

describe.runIf(isBuilt).each(['inline', 'worker'] as const)('the CRC-32 of a device, engine %s', (engine) => {
  async function described(forced: string): Promise<string> {
    vi.stubEnv('ROCEV2_CRC32', forced);
    const { openDevice } = await builtApi();
    const device = await openDevice({ address: ADDRESS, engine, udpPort: 0 });
    try {
      return device.portDescription;
    } finally {
      await device.close();
    }
  }

  it('is part of the description: the fastest, or the one that the variable names', async () => {
    expect(await described('')).toMatch(/, CRC-32 by (libdeflate|isa-l|@node-rs\/crc32|zlib|javascript)(,|$)/);
    expect(await described('zlib')).toMatch(/, CRC-32 by zlib(,|$)/);
    expect(await described('javascript')).toMatch(/, CRC-32 by javascript(,|$)/);
  });

  it('is refused by name when the variable names none', async () => {
    await expect(described('crc64')).rejects.toMatchObject({
      code: 'ERR_ROCE_UNKNOWN_NAME',
      message: expect.stringContaining("ROCEV2_CRC32 is 'crc64' (it is one of libdeflate,"),
    });
  });
});
