import * as sourceApi from '../../src/index.js';
import { registeredMemoryContract } from '../contracts/registered-memory-contract.js';

registeredMemoryContract('registered memory, inline engine', {
  api: sourceApi,
  options: {},
  server: '127.0.2.21',
  client: '127.0.2.22',
});
