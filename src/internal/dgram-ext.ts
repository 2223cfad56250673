/**
 * Internals of dgram-ext that the packages of this repository use. No part of the public API: it changes without
 * notice.
 */

export { batchedUdpAvailable, openBatchedUdpPort } from '../dgram-ext/batched-udp-port.js';
export { bindSocket, closeSocket, DEFAULT_SOCKET_BUFFER_BYTES } from '../dgram-ext/bound-socket.js';
export { FrameReceiveVector, FrameSendVector } from '../dgram-ext/frame-vectors.js';
export { type LibC, libC, nativeFunction } from '../dgram-ext/libc.js';
export { pathMtuForLink } from '../dgram-ext/link-mtu.js';
export { LoopReadiness } from '../dgram-ext/loop-readiness.js';
export { nativeUdpAvailable } from '../dgram-ext/native-socket.js';
export { completeFrame, FRAME_OF_DATAGRAMS, FRAME_OF_SEGMENTS, splitDatagrams } from '../dgram-ext/offloads.js';
export { openPacketSocket } from '../dgram-ext/packet-socket.js';
export { formatUdpEndpoint, isLoopback, parseUdpEndpoint, type UdpEndpoint } from '../dgram-ext/udp-endpoint.js';
export { openUdpPort } from '../dgram-ext/udp-port.js';
