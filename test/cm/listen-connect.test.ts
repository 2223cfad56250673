import * as sourceApi from '../../src/index.js';
import { connectionContract } from '../contracts/connection-contract.js';

connectionContract('inline engine', { api: sourceApi, options: {}, server: '127.41.0.1', client: '127.41.0.2' });
