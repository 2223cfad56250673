/**
 * What fault rules change in a frame: its IP header and its RoCE packet, with the lengths and checksums around them.
 */

import { changePacket, type FaultVerdict } from 'rocev2/internal/faults';
import { FrameInfo, parseFrame, refreshUdpChecksum, writeTrafficClass, writeUdpLength } from 'rocev2/internal/packet';
import type { SwitchPortCounters } from './switch-counters.js';

const frame = new FrameInfo();
const packet = { bytes: new Uint8Array(0) as Uint8Array, offset: 0, length: 0, ecn: 0, dscp: 0 };

export function changeFrame(
  { actions }: FaultVerdict,
  bytes: Uint8Array,
  length: number,
  counters: SwitchPortCounters,
): number {
  parseFrame(bytes, 0, length, frame);
  const { ipOffset, udpOffset, payloadOffset, payloadBytes, ecn, dscp } = frame;
  packet.bytes = bytes;
  packet.offset = payloadOffset;
  packet.length = payloadBytes;
  packet.ecn = ecn;
  packet.dscp = dscp;
  changePacket(actions, packet, counters);
  if (packet.ecn !== ecn || packet.dscp !== dscp) {
    writeTrafficClass(bytes, ipOffset, (packet.dscp << 2) | packet.ecn);
  }
  if (packet.length !== payloadBytes) {
    writeUdpLength(bytes, ipOffset, udpOffset, packet.length);
    return payloadOffset + packet.length;
  }
  if (actions.some(({ action }) => action.changesBytes)) refreshUdpChecksum(bytes, ipOffset, udpOffset);
  return length;
}
