import { counted, readInputFile } from '@rocev2/command';
import { type CapturedPacket, separated, udpOf } from 'rocev2/internal/capture';
import { RoceError } from 'rocev2/internal/core';
import {
  isEmptyPsp,
  isPspOfRoce,
  PSP_CLEAR_BYTES,
  PSP_HEADER_BYTES,
  PSP_ICV_BYTES,
  PSP_OVERHEAD_BYTES,
  PSP_PREFIX_BYTES,
  UDP_BYTES,
  writeUdpLength,
} from 'rocev2/internal/packet';
import { KeyRing, parseKeyLog, RECORD_OPENED, RECORD_WITHOUT_KEY } from 'rocev2/internal/secure';

/** Protected packets of a capture, by the result of opening them. */
export interface OpenedPackets {
  /** Authentic, and opened. */
  opened: number;
  /** The key log has no secret for their SPI. */
  withoutKey: number;
  /** No key fits: changed on the way, or made up. */
  forged: number;
  /** Captured too short to be opened. */
  cut: number;
}

export function openedWords({ opened, withoutKey, forged, cut }: OpenedPackets): string {
  const words = [
    `${counted(opened, 'protected packet')} opened`,
    withoutKey > 0 && `${withoutKey} without a key`,
    forged > 0 && `${forged} not authentic`,
    cut > 0 && `${cut} captured too short`,
  ];
  return words.filter(Boolean).join(', ');
}

export class ProtectedCapture {
  readonly packets: OpenedPackets = { opened: 0, withoutKey: 0, forged: 0, cut: 0 };
  readonly #ring: KeyRing;
  readonly #ports: ReadonlySet<number>;

  private constructor(ring: KeyRing, udpPorts: readonly number[]) {
    this.#ring = ring;
    this.#ports = new Set(udpPorts);
  }

  static async open(keyLog: string, udpPorts: readonly number[]): Promise<ProtectedCapture> {
    const secrets = parseKeyLog((await readInputFile(keyLog)).toString('utf8'), keyLog);
    if (secrets.length > 0) return new ProtectedCapture(new KeyRing(secrets), udpPorts);
    throw new RoceError('ERR_ROCE_MALFORMED', `${keyLog} has no secrets`, 'name the file of --keylog');
  }

  /** The packets of the entry, opened where a key fits. */
  take(captured: CapturedPacket): readonly CapturedPacket[] {
    return separated(captured, this.#ports).map((packet) => this.#open(packet));
  }

  #open(captured: CapturedPacket): CapturedPacket {
    const datagram = udpOf(captured);
    if (datagram === undefined || !this.#ports.has(datagram.destinationPort)) return captured;
    const { payload, payloadBytes, ipPacket } = datagram;
    if (payload.length < payloadBytes) {
      if (payload.length >= PSP_HEADER_BYTES && isPspOfRoce(payload, 0, payloadBytes)) this.packets.cut++;
      return captured;
    }
    if (!isPspOfRoce(payload, 0, payload.length)) return captured;
    const isEmpty = isEmptyPsp(payload, 0, payload.length);
    const clearBytes = isEmpty ? PSP_HEADER_BYTES : PSP_CLEAR_BYTES;
    const text = new Uint8Array(payload.length - clearBytes - PSP_ICV_BYTES);
    const verdict = this.#ring.open(payload, clearBytes, text);
    if (verdict !== RECORD_OPENED) {
      if (verdict === RECORD_WITHOUT_KEY) this.packets.withoutKey++;
      else this.packets.forged++;
      return captured;
    }
    this.packets.opened++;
    if (isEmpty) return captured;
    const ip = ipPacket.byteOffset - captured.bytes.byteOffset;
    const udp = ip + datagram.udpOffset;
    const end = ip + ipPacket.length - PSP_OVERHEAD_BYTES;
    const bytes = captured.bytes.slice(0, end);
    const bth = payload.subarray(PSP_PREFIX_BYTES, PSP_CLEAR_BYTES);
    bytes.set(bth, udp + UDP_BYTES);
    bytes.set(text, udp + UDP_BYTES + bth.length);
    writeUdpLength(bytes, ip, udp, end - udp - UDP_BYTES);
    return { ...captured, bytes, originalLength: bytes.length };
  }
}
