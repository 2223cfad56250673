/** `rocev2 icrc`: the ICRC of one packet, given in hex. */

import { text as readText } from 'node:stream/consumers';
import {
  type CliIo,
  CommandFailure,
  defineDocument,
  EXIT_FAILED,
  EXIT_VERIFICATION_FAILED,
  Output,
} from '@rocev2/command';
import type { Command } from 'commander';
import { readU16, toHex } from 'rocev2/internal/core';
import { ETHERNET_BYTES, ETHERTYPE_IPV4, ETHERTYPE_IPV6, ICRC_BYTES, icrcOfIpPacket } from 'rocev2/internal/packet';
import { bytesOfHexDump } from './hex-dump.js';

/** The fields of `icrc --json`. */
interface IcrcResult {
  /** The right ICRC as it travels, 8 hex digits. */
  readonly computed: string;
  /** The ICRC in the packet, 8 hex digits. */
  readonly carried: string;
  /** Whether they are the same. */
  readonly isRight: boolean;
}

const ICRC_DOCUMENT = defineDocument<IcrcResult>('icrc');

interface IcrcOptions {
  readonly json?: true;
}

/** Adds `rocev2 icrc` to `program`. */
export function register(program: Command, io: CliIo): void {
  program
    .command('icrc')
    .description('Compute the ICRC of a packet, and compare it with the ICRC that the packet carries.')
    .argument('[hex...]', 'the packet from the Ethernet or IP header to the ICRC (default: standard input)')
    .option('--json', 'print one JSON document')
    .addHelpText(
      'after',
      `
White space is ignored, and so are the offsets of tcpdump -x, xxd and "hexdump
-C" at the start of lines. The last four bytes are the ICRC that the packet
carries; if it is unknown, write 00000000.

Exit code 4: the ICRC of the packet is wrong.

Examples:
  rocev2 icrc 45000034123440004011a481c0000201c0000202c00012b700200000\
0430ffff000000118012345668656c6c6f000000a18a5a39
  tcpdump -r trace.pcap -c 1 -x | rocev2 icrc`,
    )
    .action((words: readonly string[], options: IcrcOptions) => icrc(words, new Output(io, options.json === true)));
}

async function icrc(words: readonly string[], output: Output): Promise<void> {
  const text = words.length > 0 ? words.join(' ') : await readText(process.stdin);
  const packet = ipPacketOf(text);
  const { computed, carried } = icrcOf(packet);
  const isRight = computed === carried;
  output.line(`computed  ${wire(computed)}`);
  output.line(`carried   ${wire(carried)}  ${isRight ? 'right' : output.colors.red('wrong')}`);
  output.document(ICRC_DOCUMENT, { computed: wire(computed), carried: wire(carried), isRight });
  if (!isRight) throw new CommandFailure(EXIT_VERIFICATION_FAILED);
}

function ipPacketOf(dump: string): Uint8Array {
  let bytes: Uint8Array;
  try {
    bytes = bytesOfHexDump(dump);
  } catch {
    throw new CommandFailure(EXIT_FAILED, 'that is not a hex dump: give two hex digits a byte');
  }
  const etherType = bytes.length > ETHERNET_BYTES ? readU16(bytes, ETHERNET_BYTES - 2) : 0;
  const isEthernet = (etherType === ETHERTYPE_IPV4 && bytes[0] !== 0x45) || etherType === ETHERTYPE_IPV6;
  return isEthernet ? bytes.subarray(ETHERNET_BYTES) : bytes;
}

function icrcOf(packet: Uint8Array): { readonly computed: number; readonly carried: number } {
  try {
    return icrcOfIpPacket(packet);
  } catch (cause) {
    const text = `${(cause as Error).message}: give all bytes from the IP header to the ICRC`;
    throw new CommandFailure(EXIT_FAILED, text, { cause });
  }
}

function wire(icrc: number): string {
  return toHex(Uint8Array.from({ length: ICRC_BYTES }, (_, i) => icrc >>> (8 * i)));
}
