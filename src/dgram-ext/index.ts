/** `rocev2/dgram-ext`: UDP sockets for Node with the socket options, buffers and batches that RoCEv2 needs. */

export { nativeUdpAvailable } from './native-socket.js';
export { openUdpPort, receiveBudgetOf, type UdpPortOptions } from './udp-port.js';
