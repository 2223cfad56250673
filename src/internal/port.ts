/** Internals of port that the packages of this repository use. No part of the public API: it changes without notice. */

export {
  datagramOf,
  ECN_CE,
  IP_ID_UNKNOWN,
  type IpIdPolicy,
  type Port,
  ROCE_UDP_PORT,
  type RxDatagram,
  TX_PAYLOAD_BYTES_MAX,
  TxBatch,
} from '../port/datagram.js';
export { frameHeaderBytes, newRxDatagram, readFrame, writeFrameHeaders } from '../port/frame-headers.js';
export { SourceCache } from '../port/source-cache.js';
