import { fromHex } from 'rocev2/internal/core';

/** `12:34:56.789 IP ...`: what tcpdump prints above a dump. */
const TCPDUMP_HEAD = /^\d\d:\d\d:\d\d/;
/** `0x0010:` of tcpdump and `00000010:` of xxd; two spaces and the text follow the bytes. */
const COLON_OFFSET = /^(?:0x)?[0-9a-f]{4,8}:\s*/i;
/** `00000010  ` of hexdump -C; the text follows between bars. */
const HEXDUMP_OFFSET = /^[0-9a-f]{7,8}\s\s/i;

export function bytesOfHexDump(dump: string): Uint8Array {
  const lines = dump.split('\n').map((line) => line.trim());
  return fromHex(lines.map(digitsOf).join(''));
}

function digitsOf(line: string): string {
  if (TCPDUMP_HEAD.test(line)) return '';
  if (COLON_OFFSET.test(line)) return line.replace(COLON_OFFSET, '').split(/\s{2,}/)[0];
  if (HEXDUMP_OFFSET.test(line)) return line.replace(HEXDUMP_OFFSET, '').split('|')[0];
  return line;
}
