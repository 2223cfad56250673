/** `HOST:PORT` as people write it, with an IPv6 address in brackets (RFC 3986 §3.2.2). */

import { RoceError } from './errors.js';
import { parseCount } from './units.js';

const PORT_MAX = 65_535;

/** A host and a port of UDP or TCP. */
export interface HostPort {
  /** Name or address, without brackets. */
  readonly host: string;
  /** 0..65535. */
  readonly port: number;
}

/**
 * Reads `HOST`, `HOST:PORT`, or an IPv6 address, which needs brackets before a port. `portMin`: 0 where the system may
 * choose. Throws ERR_ROCE_MALFORMED, ERR_ROCE_OUT_OF_RANGE for a port above 65535.
 */
export function parseHost(text: string, portMin = 1): { readonly host: string; readonly port: number | undefined } {
  if (isLikeIpv6(text)) return { host: text, port: undefined };
  const [, bracketed, plain, rest = ''] = /^(?:\[([^\]]*)\]|([^:[\]/]*))(.*)$/.exec(text) ?? [];
  const host = bracketed ?? plain ?? '';
  if (host === '') throw malformed(text, 'it names no host');
  if (bracketed !== undefined && !isLikeIpv6(host)) throw malformed(text, `'${host}' is not an IPv6 address`);
  if (rest === '') return { host, port: undefined };
  if (!/^:\d+$/.test(rest)) throw malformed(text, problemOf(rest));
  return { host, port: parseCount(rest.slice(1), portMin, PORT_MAX) };
}

/** Reads `HOST:PORT` or `[IPV6]:PORT`; as {@link parseHost} otherwise. */
export function parseHostPort(text: string, portMin = 1): HostPort {
  const { host, port } = parseHost(text, portMin);
  if (port === undefined) throw malformed(text, 'it has no port');
  return { host, port };
}

/** As {@link parseHostPort} reads it. */
export function formatHostPort(host: string, port: number): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** The code that resolves the host checks the rest. */
function isLikeIpv6(text: string): boolean {
  const groups = text.split(':').length;
  return /^[\da-f:.]+(%[\w.-]+)?$/i.test(text) && groups >= 3 && groups <= (text.includes('::') ? 9 : 8);
}

function problemOf(rest: string): string {
  if (/^:.*:/.test(rest)) return 'an IPv6 address needs brackets before a port';
  return rest.startsWith(':') ? `'${rest.slice(1)}' is not a port` : `'${rest}' cannot follow the host`;
}

function malformed(text: string, problem: string): RoceError {
  return new RoceError(
    'ERR_ROCE_MALFORMED',
    `'${text}' is not HOST:PORT: ${problem}`,
    'write HOST:PORT or [IPV6]:PORT',
  );
}
