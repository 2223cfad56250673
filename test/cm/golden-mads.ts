/** Management datagrams of the captures. */

import { readPackets } from '../support/pcapng.js';

/** The folder of the captures. */
export const GOLDEN = new URL('../golden/', import.meta.url);
const ETHERNET_BYTES = 14;
const BTH_AND_DETH_BYTES = 20;
const MAD_BYTES = 256;

/** The MADs of every UD packet to QP1. */
export function goldenMads(file: string): Uint8Array[] {
  return readPackets(new URL(file, GOLDEN)).flatMap((packet) => {
    const bth = ETHERNET_BYTES + (packet[12] === 0x86 ? 40 : 20) + 8;
    const toGsi = packet[bth] === 0x64 && packet[bth + 5] === 0 && packet[bth + 6] === 0 && packet[bth + 7] === 1;
    return toGsi ? [packet.subarray(bth + BTH_AND_DETH_BYTES, bth + BTH_AND_DETH_BYTES + MAD_BYTES)] : [];
  });
}
