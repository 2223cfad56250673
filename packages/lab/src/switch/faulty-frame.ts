/** What fault rules change in a frame: the marks of its IP header and the bytes of its RoCE packet, with the lengths and checksums around them. */

import {
  changeBytes,
  FAULT_BLEACH,
  FAULT_CHANGES,
  FAULT_CORRUPT,
  FAULT_MARK,
  FAULT_REWRITE,
  type FaultVerdict,
} from 'rocev2/internal/faults';
import {
  ECN_NOT_ECT,
  FrameInfo,
  parseFrame,
  refreshUdpChecksum,
  writeCe,
  writeEcn,
  writeUdpLength,
} from 'rocev2/internal/packet';
import type { SwitchPortCounters } from './switch-counters.js';

const frame = new FrameInfo();

/** Changes the RoCE frame `bytes[0, length)`, counts what it did, and returns the new length. */
export function changeFrame(
  verdict: FaultVerdict,
  bytes: Uint8Array,
  length: number,
  counters: SwitchPortCounters,
): number {
  parseFrame(bytes, 0, length, frame);
  const { bits } = verdict;
  if ((bits & FAULT_MARK) !== 0) {
    writeCe(bytes, frame.ipOffset);
    counters.faults_marked++;
  }
  if ((bits & FAULT_BLEACH) !== 0) {
    writeEcn(bytes, frame.ipOffset, ECN_NOT_ECT);
    counters.faults_bleached++;
  }
  if ((bits & FAULT_CHANGES) === 0) return length;
  const { ipOffset, udpOffset, payloadOffset, payloadBytes } = frame;
  const left = changeBytes(verdict, bytes, payloadOffset, payloadBytes);
  if ((bits & FAULT_REWRITE) !== 0) counters.faults_rewritten++;
  if ((bits & FAULT_CORRUPT) !== 0) counters.faults_corrupted++;
  if (left === payloadBytes) {
    refreshUdpChecksum(bytes, ipOffset, udpOffset);
    return length;
  }
  counters.faults_trimmed++;
  writeUdpLength(bytes, ipOffset, udpOffset, left);
  return payloadOffset + left;
}
