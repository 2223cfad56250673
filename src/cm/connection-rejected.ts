import { RoceError } from '../core/errors.js';
import { type CmEvent, describeRefusal } from './endpoint.js';

/** A rejected connection: `ERR_ROCE_CONNECT` with the REJ's reason and private data. */
export class ConnectionRejected extends RoceError {
  /** IBTA reason code: 8 no listener, 10 stale connection, 28 rejected by the program. */
  readonly reason: number;
  /** Private data of the REJ, 148 bytes. */
  readonly privateData: Uint8Array;

  constructor(message: string, reason: number, privateData: Uint8Array) {
    super('ERR_ROCE_CONNECT', message);
    this.reason = reason;
    this.privateData = privateData;
  }
}

export function refusal(target: string, event: CmEvent): RoceError {
  const message = `cannot connect to ${target}: ${describeRefusal(event)}`;
  if (event.type === 'REJECTED') return new ConnectionRejected(message, event.reason, event.privateData);
  return new RoceError('ERR_ROCE_CONNECT', message);
}
