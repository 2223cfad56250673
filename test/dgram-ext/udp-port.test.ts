import { networkInterfaces } from 'node:os';
import { describe, expect, it } from 'vitest';
import { nativeUdpAvailable, openUdpPort, receiveBudgetOf } from '../../src/dgram-ext/index.js';
import { pathMtuForAddress, pathMtuForLink } from '../../src/dgram-ext/link-mtu.js';
import { IpAddress } from '../../src/packet/address.js';
import type { Port } from '../../src/port/datagram.js';
import { type PortPair, portContract, sendAll, until } from '../contracts/port-contract.js';

const V4_A = IpAddress.parse('127.0.0.1');
// Only Linux answers for the whole of 127.0.0.0/8.
const V4_B = IpAddress.parse(process.platform === 'linux' ? '127.0.0.2' : '127.0.0.1');
const V6 = IpAddress.parse('::1');
const hasIpv6 = Object.values(networkInterfaces()).some((entries) => entries?.some(({ address }) => address === '::1'));

async function openPair(a: IpAddress, b: IpAddress, native: 'auto' | 'off'): Promise<PortPair> {
  const ports = [openUdpPort({ address: a, udpPort: 0, native }), openUdpPort({ address: b, udpPort: 0, native })];
  await Promise.all(ports.map((port) => port.open()));
  return {
    a: ports[0],
    b: ports[1],
    conflicting: () => openUdpPort({ address: a, udpPort: ports[0].udpPort, native }),
  };
}

portContract('udp v4, plain', { seesTrafficClass: false, seesIpId: false }, () => openPair(V4_A, V4_B, 'off'));
if (hasIpv6) portContract('udp v6, plain', { seesTrafficClass: false, seesIpId: false }, () => openPair(V6, V6, 'off'));
else it.skip('udp v6: this host has no ::1', () => {});

const missing = nativeUdpAvailable();
if (missing === undefined) {
  portContract('udp v4, native', { seesTrafficClass: false, seesIpId: false }, () => openPair(V4_A, V4_B, 'auto'));
  if (hasIpv6)
    portContract('udp v6, native', { seesTrafficClass: false, seesIpId: false }, () => openPair(V6, V6, 'auto'));
} else it.skip(`udp, native: ${missing}`, () => {});

describe('udp port', () => {
  async function withPort(port: Port, body: () => void | Promise<void>): Promise<void> {
    try {
      await port.open();
      await body();
    } finally {
      await port.close();
    }
  }

  it('plans with half of the datagrams its granted buffer holds', async () => {
    expect(receiveBudgetOf(8 * 1024 * 1024)).toBe(496);
    const large = openUdpPort({ address: V4_A, udpPort: 0 });
    const small = openUdpPort({ address: V4_A, udpPort: 0, receiveBufferBytes: 256 * 1024 });
    await withPort(large, () =>
      withPort(small, () => {
        expect(small.receiveBudgetPackets).toBeGreaterThan(0);
        expect(small.receiveBudgetPackets).toBeLessThanOrEqual(31);
        expect(large.receiveBudgetPackets).toBeGreaterThanOrEqual(small.receiveBudgetPackets);
      }),
    );
  });

  it('sends from the port it tells the engine to seal with', async () => {
    const port = openUdpPort({ address: V4_A, udpPort: 0 });
    await withPort(port, () => {
      expect(port.fixedSourcePort).toBe(port.udpPort);
      expect(port.udpPort).toBeGreaterThan(0);
    });
  });

  it('refuses the wildcard address', () => {
    expect(() => openUdpPort({ address: IpAddress.parse('0.0.0.0') })).toThrow(/wildcard.*name the address/);
    expect(() => openUdpPort({ address: IpAddress.parse('::') })).toThrow(/wildcard/);
  });

  it.each(['auto', 'off'] as const)('explains an address that is not of this host (native %s)', async (native) => {
    const port = openUdpPort({ address: IpAddress.parse('198.51.100.1'), udpPort: 0, native });
    await expect(port.open()).rejects.toMatchObject({
      code: 'ERR_ROCE_IO',
      message: expect.stringContaining('no interface of this host'),
    });
    await port.close();
  });

  it('counts a datagram the kernel refuses, and sends the ones after it', async () => {
    const a = openUdpPort({ address: V4_A, udpPort: 0 });
    const b = openUdpPort({ address: V4_B, udpPort: 0 });
    await withPort(a, () =>
      withPort(b, async () => {
        const batch = a.beginBatch();
        if (batch === undefined) throw new Error('no batch');
        batch.lengths[0] = 20;
        batch.destinationPorts[0] = b.udpPort;
        batch.destinations[0] = V6; // unreachable from an IPv4 socket
        batch.count = 1;
        a.sendBatch(batch);
        sendAll(a, b, [new Uint8Array(20)]);
        await until(() => a.counters.txErrors === 1 && b.counters.rxDatagrams === 1, 'the refusal and the datagram');
        expect(a.counters.txDatagrams).toBe(1);
      }),
    );
  });

  it('says so when the identification is not under its control', () => {
    expect(openUdpPort({ address: V4_A, native: 'off' }).description).toContain(
      'IPv4 identification not under control',
    );
    expect(openUdpPort({ address: V6, native: 'off' }).description).not.toContain('not under control');
  });

  it('can be closed while it is being opened', async () => {
    const port = openUdpPort({ address: V4_A, udpPort: 0 });
    const opening = port.open();
    await port.close();
    await expect(opening).rejects.toMatchObject({ code: 'ERR_ROCE_CLOSED' });
  });
});

describe('path MTU of a link', () => {
  it.each([
    [65536, 4096],
    [9000, 4096],
    [4200, 4096],
    [4191, 2048],
    [1500, 1024],
    [1400, 1024],
    [576, 256],
    [300, 256],
  ])('%i bytes carry path MTU %i', (linkMtuBytes, pathMtu) => {
    expect(pathMtuForLink(linkMtuBytes)).toBe(pathMtu);
  });

  it('is the largest on loopback and the usual one where nothing is known', () => {
    expect(pathMtuForAddress(V4_A)).toBe(4096);
    expect(pathMtuForAddress(V6)).toBe(4096);
    expect(pathMtuForAddress(IpAddress.parse('198.51.100.1'))).toBe(1024);
  });
});
