/**
 * TLS servers that send no session tickets. The Linux kernel as host of NVMe/TCP takes the first record behind the handshake for data, and ends the
 * connection where it is a ticket ("unhandled TLS record 22", nvme_tcp_init_connection). OpenSSL sends two of them for each pre-shared key, whatever
 * node:tls is told. Its switch is a function of the node executable, SSL_CTX_set_num_tickets, which koffi calls.
 */

import process from 'node:process';
import type { SecureContext } from 'node:tls';
import { inspect } from 'node:util';
import { requirePackage } from '../../core/packages.js';

/** What OpenSSL sends where nobody says otherwise. */
const TICKETS_OF_OPENSSL = 2;

interface TicketCalls {
  count(context: bigint): number;
  setCount(context: bigint, count: number): number;
}

/** Loaded once: each connection has a TLS context of its own. */
let calls: TicketCalls | undefined;

function load(): TicketCalls {
  const lib = requirePackage<typeof import('koffi')>(`@koromix/koffi-linux-${process.arch}`).load(null);
  return {
    count: lib.func('size_t SSL_CTX_get_num_tickets(uintptr_t)') as TicketCalls['count'],
    setCount: lib.func('int SSL_CTX_set_num_tickets(uintptr_t, size_t)') as TicketCalls['setCount'],
  };
}

/** Switches tickets off for the TLS of a context. Returns why that cannot be done here, else undefined. */
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
