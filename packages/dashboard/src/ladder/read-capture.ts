import { CaptureReader, decodeRoce, FlowTracker, udpOf } from 'rocev2/internal/capture';
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
  for (const captured of reader) {
    number++;
    const datagram = udpOf(captured);
    if (datagram?.destinationPort !== udpPort) {
      others++;
      continue;
    }
    if (packets.length === ENTRIES_MAX) {
      leftOut++;
      continue;
    }
    firstNs ??= captured.timestampNs;
    const timeNs = Number(captured.timestampNs - firstNs);
    const packet = decodeRoce(datagram, { number, timeNs, interfaceId: captured.interfaceId }, true);
    const events = tracker.observe(packet);
    const { bth, aeth, reth, deth, mad, source, destination, interfaceId, icrc } = packet;
    if (bth === undefined) {
      malformed++;
      continue;
    }
    const gap = events.find((event) => event.kind === 'gap');
    packets.push({
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
    });
  }
  if (others > 0) remarks.push(`${others} other packets of the file are not to UDP port ${udpPort}.`);
  if (malformed > 0) remarks.push(`${malformed} packets to this port are not RoCEv2.`);
  if (leftOut > 0)
    remarks.push(`${leftOut} packets behind the first ${ENTRIES_MAX} are not shown: cut the file with editcap.`);
  if (reader.damage !== undefined) {
    remarks.push(
      `The file is damaged at byte ${reader.damage.offset}: ${reader.damage.reason}. What stands before is shown.`,
    );
  }
  return { packets, remarks };
}
