import {
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
  const tracker = new FlowTracker();
  const packets: LadderEntry[] = [];
  const remarks: string[] = [];
  let number = 0;
  let others = 0;
  let malformed = 0;
  let leftOut = 0;
  let firstNs: bigint | undefined;
  const view = new PacketView();
  const other = new LeftOut();
  const ports = new Set([udpPort]);
  for (const captured of reader) {
    number++;
    const kind = view.read(captured, number, 0);
    if (kind !== SEEN.UDP || view.destinationPort !== udpPort) {
      others++;
      if (kind === SEEN.UDP) other.addToOtherPort(view);
      else other.add(kind, captured);
      continue;
    }
    for (const part of separated(captured, ports)) {
      if (packets.length === ENTRIES_MAX) {
        leftOut++;
        continue;
      }
      firstNs ??= captured.timestampNs;
      const timeNs = Number(captured.timestampNs - firstNs);
      const packet = decodeRoce(udpOf(part)!, { number, timeNs, interfaceId: captured.interfaceId }, true);
      const events = tracker.observe(packet);
      const entry = entryOf(packet, events);
      if (entry !== undefined) packets.push(entry);
      else if (packet.malformed === 'merged_packets') other.inseparable++;
      else malformed++;
    }
  }
  if (others > 0) remarks.push(`${others} other packets of the file are not to UDP port ${udpPort}.`);
  for (const reason of other.reasons) remarks.push(`Not shown: ${reason}.`);
  if (malformed > 0) remarks.push(`${malformed} packets to this port are not RoCEv2.`);
  if (leftOut > 0)
    remarks.push(`${leftOut} packets behind the first ${ENTRIES_MAX} are not shown: cut the file with editcap.`);
  if (reader.damage !== undefined) {
    remarks.push(
      `The file is damaged at byte ${reader.damage.offset}: ${reader.damage.reason}. The packets before it are shown.`,
    );
  }
  return { packets, remarks };
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
