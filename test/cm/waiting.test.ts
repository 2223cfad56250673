import * as sourceApi from '../../src/index.js';
import { waitingContract } from '../contracts/waiting-contract.js';

waitingContract('signal and timeoutMs, inline engine', {
  api: sourceApi,
  options: {},
  server: '127.0.2.1',
  client: '127.0.2.2',
});
