/**
 * `@rocev2/rpc`: calls over a connection. Methods have schemas, deadlines and cancellation, and can stream in either
 * direction. The receiver reads large values from the sender's memory.
 *
 * @module @rocev2/rpc
 */

export { connectRpc, type RpcClient } from './client.js';
export { RPC_CODES, RpcError } from './rpc-error.js';
export type { RpcCarrier, RpcLimits } from './rpc-link.js';
export { RpcStream, rpcOverStream } from './rpc-stream.js';
export type { InputOf, OutputOf, SchemaIssue, SchemaResult, StandardSchema } from './schema.js';
export { type RpcCounters, type RpcServer, type ServeOptions, serveRpc } from './server.js';
export {
  type Answered,
  type CallContext,
  defineService,
  type Got,
  type Handlers,
  type Method,
  type Methods,
  type Sent,
  type Service,
  type StreamsIn,
  type StreamsOut,
  type Taken,
} from './service.js';
