import * as sourceApi from '../../src/index.js';
import { streamContract } from '../contracts/stream-contract.js';

streamContract('streams, inline engine', { api: sourceApi, options: {}, server: '127.0.2.3', client: '127.0.2.4' });
