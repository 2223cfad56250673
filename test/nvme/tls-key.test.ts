/** Keys of NVMe/TCP over TLS: how they are written, and what TLS gets of them. */

import { describe, expect, it } from 'vitest';
import { NvmeTlsKey } from '../../src/storage-rpc/nvme/auth/tls-key.js';

/** The key and the identity are those of the tests of libnvme (test/psk.c). */
const TEXT = 'NVMeTLSkey-1:01:VRLbtnN9AQb2WXW3c9+wEf/DRLz0QuLdbYvEhwtdWwNf9LrZ:';
const NAMES = { hostNqn: 'nqn.psk-test-host', subsystemNqn: 'nqn.psk-test-subsys' };
const IDENTITY = 'NVMe1R01 nqn.psk-test-host nqn.psk-test-subsys iSbjiStwJ/1TrTvDlt2fjFmzvsytOJelidNnA+X5lEU=';

describe('a TLS key', () => {
  it('gives the identity of libnvme', () => {
    expect(NvmeTlsKey.parse(TEXT).pskOf(NAMES).identity).toBe(IDENTITY);
  });

  it('gives the digest and the key of the Linux kernel, without a transformation before', () => {
    const retained = Buffer.from('1733c59fa7f48fcf37f5f26fc4ff0268ad4f78e030f4f3b0bfd1d47e7bb1447a', 'hex');
    const key = NvmeTlsKey.parse(NvmeTlsKey.format(retained, false));
    const { identity, psk } = key.pskOf({ hostNqn: 'hostnqn', subsystemNqn: 'subsysnqn' });
    expect(identity).toBe('NVMe1R01 hostnqn subsysnqn OldoKuTfKddMuyCznAZojkWD7P4D9/AtzDzLimtOxqI=');
    expect(psk.toString('hex')).toBe('3c17da628474a04d2247c4cab47968c915388193f7c071bd9489cc3666cd7cc8');
  });

  it('is another one for each host, subsystem and version', () => {
    const key = NvmeTlsKey.parse(TEXT);
    const psks = [
      key.pskOf(NAMES),
      key.pskOf(NAMES, 0),
      key.pskOf({ ...NAMES, hostNqn: 'nqn.other' }),
      key.pskOf({ ...NAMES, subsystemNqn: 'nqn.other' }),
    ];
    expect(new Set(psks.map(({ psk }) => psk.toString('hex'))).size).toBe(4);
    expect(psks[1].identity).toBe('NVMe0R01 nqn.psk-test-host nqn.psk-test-subsys');
  });

  it('is written as it was read', () => {
    const bytes = Buffer.from('VRLbtnN9AQb2WXW3c9+wEf/DRLz0QuLdbYvEhwtdWwM=', 'base64');
    expect(NvmeTlsKey.format(bytes)).toBe(TEXT);
  });

  it.each([
    ['of another form', 'NVMeTLSkey-2:01:VRLbtnN9AQb2WXW3c9+wEf/DRLz0QuLdbYvEhwtdWwNf9LrZ:', 'ERR_ROCE_MALFORMED'],
    ['with a wrong checksum', TEXT.replace('LrZ', 'LrY'), 'ERR_ROCE_MALFORMED'],
    ['too short', 'NVMeTLSkey-1:01:VRLbtnN9AQY=:', 'ERR_ROCE_MALFORMED'],
    [
      'of SHA-384',
      'NVMeTLSkey-1:02:VRLbtnN9AQb2WXW3c9+wEf/DRLz0QuLdbYvEhwtdWwP/w0S89ELi3W2LxIcLXVsDn8kXZQ==:',
      'ERR_ROCE_UNSUPPORTED',
    ],
  ])('is refused, and not shown, %s', (_, text, code) => {
    let error: unknown;
    try {
      NvmeTlsKey.parse(text);
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toMatchObject({ code });
    expect((error as Error).message).not.toContain('VRLb');
  });

  it('refuses names that are too long for an identity', () => {
    const hostNqn = `nqn.2026-11.example:${'h'.repeat(180)}`;
    expect(() => NvmeTlsKey.parse(TEXT).pskOf({ ...NAMES, hostNqn })).toThrow(
      expect.objectContaining({ code: 'ERR_ROCE_LIMIT' }),
    );
  });
});
