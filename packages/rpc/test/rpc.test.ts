import * as api from '../../src/index.js';
import * as rpc from '../../src/rpc/index.js';
import { rpcContract } from '../contracts/rpc-contract.js';

rpcContract('rpc', { api, rpc, address: '127.0.2.5' });
