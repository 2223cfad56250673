/** Internals of nbd that the packages of this repository use. No part of the public API: it changes without notice. */

export { parseSocketAddress, type SocketAddress } from '../storage-rpc/nbd/listen-address.js';
export { listenOn } from '../storage-rpc/nbd/listen-on.js';
export { NbdServer, type NbdServerOptions } from '../storage-rpc/nbd/server.js';
export type { NbdCounters } from '../storage-rpc/nbd/server-connection.js';
export { readPskFile } from '../storage-rpc/nbd/tls/psk-file.js';
