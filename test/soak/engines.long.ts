/** Contracts on engines and sockets beside those that `npm test` runs them on. */

import { connectionContract } from '../contracts/connection-contract.js';
import { rpcContract } from '../contracts/rpc-contract.js';
import { streamContract } from '../contracts/stream-contract.js';
import { builtApi, builtRpc } from '../support/built-api.js';

const api = await builtApi();
const addresses = { server: '127.53.2.1', client: '127.53.2.2' };
streamContract('streams, worker engine', { api, options: { engine: 'worker' }, ...addresses });
connectionContract('worker engine on node:dgram, without spinning', {
  api,
  options: { engine: 'worker', io: 'dgram', spin: false },
  ...addresses,
});
rpcContract('rpc, worker engine', {
  api,
  rpc: await builtRpc(),
  options: { engine: 'worker' },
  address: addresses.server,
});
