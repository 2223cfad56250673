import * as api from '../../../src/index.js';
import { rpcContract } from '../../../test/contracts/rpc-contract.js';
import * as rpc from '../src/index.js';

rpcContract('rpc', { api, rpc, address: '127.0.2.5' });
