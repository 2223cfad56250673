import picocolors from 'picocolors';
import { decodeRoce } from 'rocev2/internal/capture';
import { datagramOf, type EvidencePacket } from '../../conform/evidence.js';
import { PacketLines } from '../decode-lines.js';

const NO_COLORS = picocolors.createColors(false);

export function packetLines(packets: readonly EvidencePacket[]): string {
  const format = new PacketLines(NO_COLORS);
  return packets
    .flatMap((packet) => {
      const datagram = datagramOf(packet);
      const { number, timeNs } = packet;
      return datagram === undefined
        ? []
        : [format.next(decodeRoce(datagram, { number, timeNs, interfaceId: 0 }, true), [])];
    })
    .join('\n');
}
