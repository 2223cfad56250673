import { type CapturedPacket, PacketView, SEEN, separated } from 'rocev2/internal/capture';
import { BTH_BYTES, ICRC_BYTES, UDP_BYTES } from 'rocev2/internal/packet';
import { carriedIcrc, computedIcrc, repairIcrc } from './packet-icrc.js';

export class IcrcRepair {
  repaired = 0;
  readonly #ports: ReadonlySet<number>;
  readonly #seen = new PacketView();

  constructor(udpPorts: readonly number[]) {
    this.#ports = new Set(udpPorts);
  }

  /** The packets of the entry, with correct ICRCs. */
  take(captured: CapturedPacket): readonly CapturedPacket[] {
    const packets = separated(captured, this.#ports);
    for (const packet of packets) if (packet.train?.count !== 0) this.#repair(packet);
    return packets;
  }

  #repair(captured: CapturedPacket): void {
    const seen = this.#seen;
    if (seen.read(captured, 0, 0) !== SEEN.UDP || !this.#ports.has(seen.destinationPort)) return;
    const { bytes, udp, udpEnd, ipEnd, isCut } = seen;
    if (isCut || udpEnd !== ipEnd || udpEnd - udp < UDP_BYTES + BTH_BYTES + ICRC_BYTES) return;
    if (computedIcrc(bytes, seen, udpEnd) === carriedIcrc(bytes, seen, udpEnd)) return;
    repairIcrc(bytes, seen, udpEnd);
    this.repaired++;
  }
}
