import { type CapturedDatagram, LINKTYPE_RAW, type PacketSink, udpOf } from 'rocev2/internal/capture';
import { fromHex, toHex } from 'rocev2/internal/core';

/** A packet that the tester sent or received. */
export interface EvidencePacket {
  /** Its number in the capture of the run, from 1. */
  readonly number: number;
  /** Since the first packet of the run. */
  readonly timeNs: number;
  /** From the IP header to the ICRC, in hex. */
  readonly hex: string;
}

export class Evidence implements PacketSink {
  readonly #onward: PacketSink | undefined;
  #packets: EvidencePacket[] = [];
  #title: string | undefined;
  #count = 0;
  #firstNs = 0n;

  constructor(onward?: PacketSink) {
    this.#onward = onward;
  }

  begin(title: string): void {
    this.#title = title;
    this.#packets = [];
  }

  get packets(): readonly EvidencePacket[] {
    return this.#packets;
  }

  writePacket(interfaceId: number, timestampNs: bigint, packet: Uint8Array, comment?: string): boolean {
    if (this.#count++ === 0) this.#firstNs = timestampNs;
    this.#packets.push({ number: this.#count, timeNs: Number(timestampNs - this.#firstNs), hex: toHex(packet) });
    const remarks = [this.#title, comment].filter((remark) => remark !== undefined).join('; ');
    this.#title = undefined;
    return this.#onward?.writePacket(interfaceId, timestampNs, packet, remarks || undefined) ?? true;
  }
}

export function datagramOf({ hex }: EvidencePacket): CapturedDatagram | undefined {
  const bytes = fromHex(hex);
  const captured = { timestampNs: 0n, interfaceId: 0, linkType: LINKTYPE_RAW, comment: undefined };
  return udpOf({ ...captured, bytes, originalLength: bytes.length });
}
