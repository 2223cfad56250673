/**
 * TLS servers that send no session tickets: the Linux NVMe/TCP host takes the first record after the handshake for data
 * and disconnects on a ticket ("unhandled TLS record 22", nvme_tcp_init_connection). With all options of node:tls,
 * OpenSSL sends two for each pre-shared key; koffi calls SSL_CTX_set_num_tickets of the node executable.
 */

import process from 'node:process';
import type { SecureContext } from 'node:tls';
import { inspect } from 'node:util';
import { requirePackage } from '../../core/packages.js';

const TICKETS_OF_OPENSSL = 2;

interface TicketCalls {
  count(context: bigint): number;
  setCount(context: bigint, count: number): number;
}

let calls: TicketCalls | undefined;

function load(): TicketCalls {
  const lib = requirePackage<typeof import('koffi')>(`@koromix/koffi-linux-${process.arch}`).load(null);
  return {
    count: lib.func('size_t SSL_CTX_get_num_tickets(uintptr_t)') as TicketCalls['count'],
    setCount: lib.func('int SSL_CTX_set_num_tickets(uintptr_t, size_t)') as TicketCalls['setCount'],
  };
}

export function withoutTickets({ context }: SecureContext): string | undefined {
  try {
    calls ??= load();
    const { count, setCount } = calls;
    // Node gives the SSL_CTX as a value that only native code can read, and shows its address.
    const address = /^\[External: ([0-9a-f]+)\]$/.exec(inspect((context as { _external?: unknown })._external))?.[1];
    if (address === undefined) return 'this version of Node.js does not show its TLS context';
    const pointer = BigInt(`0x${address}`);
    if (Number(count(pointer)) !== TICKETS_OF_OPENSSL) return 'this version of Node.js has another TLS context';
    return setCount(pointer, 0) === 1 ? undefined : 'OpenSSL refuses it';
  } catch (error) {
    return (error as Error).message;
  }
}
