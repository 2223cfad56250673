import { createSocket } from 'node:dgram';
import { RoceError } from 'rocev2/internal/core';
import { IpAddress } from 'rocev2/internal/packet';

/** Connecting a UDP socket sends nothing but makes the system look up the route. */
const DISCARD_PORT = 9;

export async function localAddressTowards(peer: IpAddress): Promise<IpAddress> {
  const socket = createSocket(peer.family === 4 ? 'udp4' : 'udp6');
  try {
    await new Promise<void>((resolve, reject) => {
      socket.once('error', reject);
      socket.connect(DISCARD_PORT, peer.text, resolve);
    });
    return IpAddress.parse(socket.address().address);
  } catch (cause) {
    throw new RoceError('ERR_ROCE_CONNECT', `no route to ${peer}`, undefined, { cause });
  } finally {
    socket.close();
  }
}
