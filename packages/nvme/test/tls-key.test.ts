/** Keys of NVMe/TCP over TLS: how they are written, and what TLS gets of them. */

import { describe, expect, it } from 'vitest';
import { NvmeTlsKey } from '../src/auth/tls-key.js';

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

  it('gives the identities and keys that libnvme 1.13 gives for its kernel', () => {
    const key = NvmeTlsKey.parse(NvmeTlsKey.format(Buffer.from(Array.from({ length: 32 }, (_, i) => i))));
    const names = {
      hostNqn: 'nqn.2014-08.org.nvmexpress:uuid:00000000-0000-4000-8000-000000000001',
      subsystemNqn: 'nqn.2026-11.rocev2:disk',
    };
    const said = `${names.hostNqn} ${names.subsystemNqn}`;
    expect(key.pskOf(names, '0-libnvme')).toEqual({
      identity: `NVMe0R01 ${said}`,
      psk: Buffer.from('BY8rsSBpCSF6sImU6dmWUnBeM+EhrR6p+ktyOPG88Zk=', 'base64'),
    });
    expect(key.pskOf(names, '1-libnvme')).toEqual({
      identity: `NVMe1R01 ${said} q3xdEn6lqha0XXTHNYB/t08hN0YlCZnI7+5xv5SWn0I=`,
      psk: Buffer.from('9itvMV9S+L8wLTbKaKmzkFO+UGliSpQ/7BM/GGngnlU=', 'base64'),
    });
  });

  it('is another one for each host, subsystem and version', () => {
    const key = NvmeTlsKey.parse(TEXT);
    const psks = [
      key.pskOf(NAMES),
      key.pskOf(NAMES, '0'),
      key.pskOf(NAMES, '1-libnvme'),
      key.pskOf(NAMES, '0-libnvme'),
      key.pskOf({ ...NAMES, hostNqn: 'nqn.other' }),
      key.pskOf({ ...NAMES, subsystemNqn: 'nqn.other' }),
    ];
    expect(new Set(psks.map(({ psk }) => psk.toString('hex'))).size).toBe(6);
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
