/**
 * `rocev2/dgram-ext`: UDP sockets for Node with the socket options, buffers and batches that RoCEv2 needs.
 *
 * @module rocev2/dgram-ext
 */

export { IpAddress } from '../packet/address.js';
export {
  IP_ID_UNKNOWN,
  type IpIdPolicy,
  type Port,
  type PortCounters,
  ROCE_UDP_PORT,
  type RxDatagram,
  type TxBatch,
} from '../port/datagram.js';
export {
  type BatchedUdpPort,
  type BatchedUdpPortOptions,
  batchedUdpAvailable,
  openBatchedUdpPort,
} from './batched-udp-port.js';
export { nativeUdpAvailable } from './native-socket.js';
export { receiveBudgetOf, type UdpSocketOptions } from './udp-options.js';
export { openUdpPort, type UdpPortOptions } from './udp-port.js';
