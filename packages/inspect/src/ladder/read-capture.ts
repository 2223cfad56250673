import {
  type CaptureDamage,
  type CapturedPacket,
  CaptureReader,
  type DecodedPacket,
  decodeRoce,
  type FlowEvent,
  FlowTracker,
  LeftOut,
  PacketView,
  SEEN,
  separated,
  udpOf,
} from 'rocev2/internal/capture';
import { ENTRIES_MAX, type LadderEntries, type LadderEntry } from './ladder-entry.js';

export function readCapture(file: Uint8Array, udpPort: number): LadderEntries {
  const reader = new CaptureReader(file);
  const packets = new CapturePackets(udpPort);
  for (const captured of reader) packets.take(captured);
  return packets.entries(reader.damage);
}

/** Takes the packets of one capture in order. */
export class CapturePackets {
  readonly #udpPort: number;
  readonly #ports: ReadonlySet<number>;
  readonly #onDecoded: (packet: DecodedPacket, events: readonly FlowEvent[]) => void;
  readonly #tracker = new FlowTracker();
  readonly #packets: LadderEntry[] = [];
  readonly #view = new PacketView();
  readonly #other = new LeftOut();
  #number = 0;
  #others = 0;
  #malformed = 0;
  #leftOut = 0;
  #firstNs: bigint | undefined;

  /** `onDecoded` is called for each of the first packets to the port, well formed or not. */
  constructor(udpPort: number, onDecoded: (packet: DecodedPacket, events: readonly FlowEvent[]) => void = () => {}) {
    this.#udpPort = udpPort;
    this.#ports = new Set([udpPort]);
    this.#onDecoded = onDecoded;
  }

  /** The next packet of the file. */
  take(captured: CapturedPacket): void {
    const number = ++this.#number;
    const kind = this.#view.read(captured, number, 0);
    if (kind !== SEEN.UDP || this.#view.destinationPort !== this.#udpPort) {
      this.#others++;
      if (kind === SEEN.UDP) this.#other.addToOtherPort(this.#view);
      else this.#other.add(kind, captured);
      return;
    }
    for (const part of separated(captured, this.#ports)) {
      if (this.#packets.length === ENTRIES_MAX) {
        this.#leftOut++;
        continue;
      }
      this.#firstNs ??= captured.timestampNs;
      const timeNs = Number(captured.timestampNs - this.#firstNs);
      const packet = decodeRoce(udpOf(part)!, { number, timeNs, interfaceId: captured.interfaceId }, true);
      const events = this.#tracker.observe(packet);
      this.#onDecoded(packet, events);
      const entry = entryOf(packet, events);
      if (entry !== undefined) this.#packets.push(entry);
      else if (packet.malformed === 'merged_packets') this.#other.inseparable++;
      else this.#malformed++;
    }
  }

  entries(damage: CaptureDamage | undefined): LadderEntries {
    const remarks: string[] = [];
    if (this.#others > 0)
      remarks.push(`${this.#others} other packets of the file are not to UDP port ${this.#udpPort}.`);
    for (const reason of this.#other.reasons) remarks.push(`Not shown: ${reason}.`);
    if (this.#malformed > 0) remarks.push(`${this.#malformed} packets to this port are not RoCEv2.`);
    if (this.#leftOut > 0) {
      remarks.push(
        `${this.#leftOut} packets after the first ${ENTRIES_MAX} are not shown: shorten the file with editcap.`,
      );
    }
    if (damage !== undefined) {
      remarks.push(`The file is damaged at byte ${damage.offset}: ${damage.reason}. The packets before it are shown.`);
    }
    return { packets: this.#packets, remarks };
  }
}

function entryOf(packet: DecodedPacket, events: readonly FlowEvent[]): LadderEntry | undefined {
  const { number, timeNs, bth, aeth, reth, deth, mad, source, destination, interfaceId, icrc } = packet;
  if (bth === undefined) return undefined;
  const gap = events.find((event) => event.kind === 'gap');
  return {
    number,
    timeNs,
    source,
    destination,
    interfaceId,
    destQpn: bth.destQpn,
    sourceQpn: deth?.sourceQpn,
    opcode: bth.opcode,
    psn: bth.psn,
    answer: aeth,
    readBytes: reth?.dmaLength ?? 0,
    isRepeated: events.some(({ kind }) => kind === 'retransmission'),
    missing: gap?.missing ?? 0,
    isLost: icrc === 'bad',
    notes: [
      ...(icrc === 'bad' ? ['Its ICRC is wrong: the receiver drops it.'] : []),
      ...(mad === undefined ? [] : [`It is a ${mad.name} of connection management.`]),
    ],
  };
}
