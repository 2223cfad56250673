/**
 * From the keys of a control connection to the packets' security association. Each end chooses the SPI of the packets
 * that it receives. The server has the association before it answers, the client before it reports that it is
 * connected.
 */

import { RoceError } from '../core/errors.js';
import type { RdmaDevice } from '../verbs/device.js';
import type { ControlChannel } from './control-channel.js';
import type { Hello } from './hello.js';

/** Packets may be in flight when a connection ends: they are opened for this long. */
const LINGER_MS = 3_000;
const KEY_BYTES = { 'aes-128-gcm': 16, 'aes-256-gcm': 32 } as const;

export function ownSpi(channel: ControlChannel, device: RdmaDevice): number | undefined {
  const { security, link } = device;
  if (channel.keys === undefined || security === undefined || link.protection === undefined) {
    if (security?.mode !== 'require') return undefined;
    throw new RoceError(
      'ERR_ROCE_MISMATCH',
      'the device requires protection, and this connection has no keys',
      'use listen and connect, or a command that takes --secure',
    );
  }
  const association = channel.association ?? associationOf(channel, device);
  channel.association = association;
  return association.spi;
}

function associationOf(
  channel: ControlChannel,
  { security, link }: RdmaDevice,
): NonNullable<ControlChannel['association']> {
  const spi = security!.takeSpi();
  const forget = () => {
    link.protection!.dissolve(spi);
    security!.giveSpi(spi);
  };
  void channel.closed.then(() => {
    // Both ends learn of the end at about the same time. Other connections of the two continue, so packets sealed now
    // must not need keys that the other end is about to drop.
    link.protection!.retire(spi);
    setTimeout(forget, LINGER_MS).unref();
  });
  return { spi, agreed: undefined };
}

/** Several queue pairs that are connected over one channel share its association. */
export async function associateWithPeer(channel: ControlChannel, device: RdmaDevice, hello: Hello): Promise<void> {
  const spi = ownSpi(channel, device);
  const { association, keys } = channel;
  if (spi === undefined || association === undefined || keys === undefined || association.agreed !== undefined) return;
  if (hello.spi === undefined)
    throw new RoceError('ERR_ROCE_MISMATCH', 'the peer has announced no SPI for its packets');
  const { isInitiator, sendSecret, receiveSecret } = keys;
  const cipher = [hello.cipher, device.security!.cipher].includes('aes-256-gcm') ? 'aes-256-gcm' : 'aes-128-gcm';
  const terms = {
    spi,
    remoteSpi: hello.spi,
    peer: hello.gid.text,
    peerUdpPort: hello.udpPort,
    hasFixedPort: typeof hello.sourcePort === 'number',
    isInitiator,
    sendSecret,
    receiveSecret,
    keyBytes: KEY_BYTES[cipher],
  };
  await device.security!.logKeys(terms);
  await device.link.protection!.associate(terms);
  association.agreed = { remoteSpi: hello.spi, cipher };
}

export function beginProtection(channel: ControlChannel, device: RdmaDevice): void {
  if (channel.association !== undefined) device.link.protection?.begin(channel.association.spi);
}
