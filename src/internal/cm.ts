/** Internals of cm that the packages of this repository use. No part of the public API: it changes without notice. */

export type { CmConnection } from '../cm/cm-connection.js';
export type { CmListener, WaitingRequest } from '../cm/cm-listener.js';
export type { CmRequest } from '../cm/cm-request.js';
export { acceptConcurrently, type Established, type SetUpEnd } from '../cm/concurrent-accept.js';
export { connectSocket } from '../cm/connect-socket.js';
export type { Connection } from '../cm/connection.js';
export { ConnectionManager } from '../cm/connection-manager.js';
export { ConnectionRejected } from '../cm/connection-rejected.js';
export { type ControlChannel, dial } from '../cm/control-channel.js';
export { ControlListener } from '../cm/control-listener.js';
export { type DatagramRequest, type DatagramService, startDatagrams } from '../cm/datagram-services.js';
export { type Agreement, type ExchangeOptions, exchangeAsClient, exchangeAsServer } from '../cm/exchange.js';
export { dialFixed, type FixedChannel } from '../cm/fixed-channel.js';
export { FixedListener } from '../cm/fixed-listener.js';
export { GsiChannel } from '../cm/gsi.js';
export { dynamicPort, encodeIpPrivateData, tcpServiceId, UDP_QKEY, udpServiceId } from '../cm/ip-addressing.js';
export { type ConnectOptions, connect, listen } from '../cm/listen-connect.js';
export type { Listener, ListenOptions } from '../cm/listener.js';
export { ABOUT_REP } from '../cm/mad-sender.js';
export { buildMad, type CmMad, type MessageFields, type MessageName, parseMad } from '../cm/messages.js';
export type { Operation } from '../cm/operations.js';
export type { IncomingRequest } from '../cm/passive-side.js';
export { printable } from '../cm/printable.js';
export { ProtocolDriver } from '../cm/protocol-driver.js';
export { activeParameters, initializeQp, passiveParameters, pathMtuCode } from '../cm/qp-parameters.js';
export {
  connectQueuePair,
  type Destination,
  initializeQueuePair,
  qpTypeOf,
  TRANSPORTS,
  type TransportName,
} from '../cm/queue-pair-setup.js';
export { RdmaFallback } from '../cm/rdma-fallback.js';
export { REJ_CONSUMER_DEFINED, REJ_INVALID_SERVICE_ID, REJ_STALE_CONNECTION } from '../cm/reject-reason.js';
export type { RemoteTarget } from '../cm/remote-target.js';
export { ScratchBufferPool } from '../cm/scratch-buffer-pool.js';
export { channelSecurity, secureAsClient, secureAsServer, UntrustedPeerError } from '../cm/secure-channel.js';
export { serveEach } from '../cm/serve-each.js';
export type { ServiceRequest } from '../cm/sidr-responder.js';
export { peerAddress } from '../cm/tcp-address.js';
export { TcpListener } from '../cm/tcp-listener.js';
export type { Elements } from '../cm/transfers.js';
export { WARM_UP_MS_MAX, warmUp } from '../cm/warm-up.js';
