/**
 * Internals of stock-exchanges that the packages of this repository use. No part of the public API: it changes without
 * notice.
 */

export {
  PERFTEST_FIRST_MESSAGE,
  PERFTEST_TCP_PORT,
  PERFTEST_TOOLS,
  PerftestExchange,
  type PerftestReport,
} from '../cm/perftest-exchange.js';
export type { PerftestKeys } from '../cm/perftest-keys.js';
export { QpWire, tcpWire } from '../cm/perftest-wire.js';
export {
  exchangeAsPingpongClient,
  exchangeAsPingpongServer,
  PINGPONG_FIRST_MESSAGE,
  PINGPONG_RC_ATTRIBUTES,
  PINGPONG_TCP_PORT,
  type PingpongDestination,
} from '../cm/pingpong-exchange.js';
export { exchangeAsSrqClient, exchangeAsSrqServer } from '../cm/srq-pingpong-exchange.js';
