import { RoceError } from 'rocev2/internal/core';
import { NvmeStatusError } from '../status.js';

export function failToConnect(error: unknown): never {
  if (error instanceof NvmeStatusError) {
    throw new RoceError('ERR_ROCE_CONNECT', error.message, undefined, { cause: error });
  }
  throw error;
}
