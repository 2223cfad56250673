/** Addresses to which programs of librdmacm bind their identifiers. */

import { constants } from 'node:os';
import { describe, expect, it } from 'vitest';
import { SeededRandom } from '../../../src/core/random.js';
import { IpAddress } from '../../../src/packet/address.js';
import { Identifier, type IdentifierHost } from '../src/rdma-cm/identifier.js';

function bind(device: string, to: string): number {
  const host = {
    device: { address: IpAddress.parse(device) },
    driver: { random: new SeededRandom(1).stream('identifiers') },
    takePort: () => true,
  };
  const id = new Identifier(host as unknown as IdentifierHost, () => {}, { number: 1, uid: 0n, portSpace: 0x0106 });
  const result = id.bind({ address: IpAddress.parse(to), port: 7471 });
  return typeof result === 'number' ? result : 0;
}

describe('binding', () => {
  it.each([
    ['10.9.0.1', '10.9.0.1'],
    ['10.9.0.1', '127.0.0.1'],
    ['fd00::1', '::1'],
    ['127.0.0.1', '127.0.0.1'],
  ])('a NIC on %s takes %s', (device, to) => {
    expect(bind(device, to)).toBe(0);
  });

  it.each([
    ['10.9.0.1', '10.9.0.2'],
    ['127.0.0.2', '127.0.0.1'],
    ['10.9.0.1', '::1'],
  ])('a NIC on %s does not take %s', (device, to) => {
    expect(bind(device, to)).toBe(constants.errno.ENODEV);
  });
});
