/** What every connection can do, with packets that are protected. */

import { connectionContract } from '../contracts/connection-contract.js';
import { builtApi, isBuilt } from '../support/built-api.js';

if (isBuilt) {
  const api = await builtApi();
  const psk = { identity: 'both', key: new Uint8Array(32).fill(5) };
  // The contract has peers without credentials, too.
  const options = { secure: { psk, mode: 'prefer' } } as const;
  connectionContract('secure', { api, options, server: '127.53.3.1', client: '127.53.3.2' });
  const inThread = { ...options, engine: 'worker' } as const;
  connectionContract('secure, worker engine', { api, options: inThread, server: '127.53.4.1', client: '127.53.4.2' });
}
