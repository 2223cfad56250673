/**
 * Internals of capture that the packages of this repository use. No part of the public API: it changes without notice.
 */

export { CaptureCopy } from '../port/capture/capture-copy.js';
export { CapturePort } from '../port/capture/capture-port.js';
export { CaptureReader } from '../port/capture/capture-reader.js';
export { CaptureStream } from '../port/capture/capture-stream.js';
export type { CaptureDamage, CapturedPacket } from '../port/capture/captured-packet.js';
export { type DecodedBth, type DecodedPacket, decodeRoce, type IcrcVerdict } from '../port/capture/decoded-packet.js';
export { type FlowEvent, type FlowSummary, FlowTracker } from '../port/capture/flow-tracker.js';
export { LeftOut } from '../port/capture/left-out.js';
export { ObservedPort } from '../port/capture/observed-port.js';
export { PacketRing, type RecordedPacket } from '../port/capture/packet-ring.js';
export { PacketView, SEEN } from '../port/capture/packet-view.js';
export { LINKTYPE_ETHERNET, LINKTYPE_RAW } from '../port/capture/pcapng-blocks.js';
export { type PacketSink, PcapngFile } from '../port/capture/pcapng-file.js';
export { TraceFile } from '../port/capture/trace-file.js';
export { TracePort } from '../port/capture/trace-port.js';
export { isTrace, readTrace, type TraceRecord } from '../port/capture/trace-reader.js';
export { separated } from '../port/capture/train.js';
export { type CapturedDatagram, udpOf } from '../port/capture/udp-in-capture.js';
