/** `rocev2 decode`: what is in a capture of RoCEv2 traffic, packet by packet and flow by flow. */

import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  type CliIo,
  type Column,
  CommandFailure,
  counted,
  countOption,
  EXIT_FAILED,
  type Output,
  portOption,
  printing,
  qpnOption,
  readInputFile,
} from '@rocev2/command';
import type { Command } from 'commander';
import {
  CaptureReader,
  type DecodedPacket,
  decodeRoce,
  type FlowSummary,
  FlowTracker,
  isTrace,
  LINK_TYPES,
  udpOf,
} from 'rocev2/internal/capture';
import { ROCE_UDP_PORT } from 'rocev2/internal/port';
import { failIfDamaged } from './capture-damage.js';
import { DECODE_DOCUMENT, DECODE_LINES, PacketLines, sixDigits } from './decode-lines.js';
import { decodeTrace } from './decode-trace.js';
import { openedWords, ProtectedCapture } from './protected-capture.js';

const PACKETS_PER_TURN = 512;

interface DecodeOptions {
  readonly flow?: true;
  readonly qp?: number;
  readonly limit?: number;
  readonly icrc: boolean;
  readonly udpPort: number;
  readonly keys?: string;
}

/** Adds `rocev2 decode` to `program`. */
export function register(program: Command, io: CliIo): void {
  program
    .command('decode')
    .description(
      'Print the RoCEv2 packets of a pcapng or pcap file, or the events of a --trace file, and a summary of each flow.',
    )
    .argument('<file>', 'a capture of Ethernet, 802.1Q or RAW IP packets, or a trace (docs/events.md)')
    .option('--flow', 'only packets with events: gaps, retransmissions, NAKs, bad ICRCs')
    .option('--qp <qpn>', 'only packets to or from this queue pair (59 or 0x3b)', qpnOption)
    .option('--limit <n>', 'stop after n packets', countOption)
    .option('--udp-port <port>', 'UDP port of the RoCEv2 packets', portOption, ROCE_UDP_PORT)
    .option('--no-icrc', 'do not verify the ICRC')
    .option('--keys <file>', 'open protected packets with the secrets of --keylog')
    .option('--json', 'print JSON lines')
    .addHelpText(
      'after',
      `
Flags: A acknowledge requested, SE solicited event, M migration state, FECN and
BECN, CE congestion experienced.
A PSN behind the newest PSN of its flow counts as resent; a skipped PSN is a
gap. Both are as seen where the capture was made.
QPN and PSN are in hex.
Only UD packets name their source queue pair, so --qp finds connected traffic
by its destination.

--json prints one object per packet,
{"type":"packet",number,timeNs,source,destination,icrc,bth,...,events}, and then
one {"type":"summary",packets,otherPackets,flows,damage}. Virtual addresses and
other 64-bit values are decimal strings.

Examples:
  rocev2 decode trace.pcapng
  rocev2 decode trace.pcapng --qp 0x11 --limit 100
  rocev2 decode trace.pcapng --flow
  rocev2 decode protected.pcapng --keys keys.log
  rocev2 decode trace.jsonl --flow
  rocev2 decode trace.pcapng --json | jq 'select(.bth.psn == 256)'`,
    )
    .action(printing(io, decode));
}

async function decode(path: string, options: DecodeOptions, output: Output): Promise<void> {
  const bytes = await readInputFile(path);
  if (isTrace(bytes)) return traceStory(path, bytes, options, output);
  const reader = openCapture(path, bytes);
  const keys = options.keys === undefined ? undefined : await ProtectedCapture.open(options.keys, [options.udpPort]);
  const tracker = new FlowTracker();
  const lines = new PacketLines(output.colors);
  const progress = output.io.stdout.isTTY ? undefined : output.progress(bytes.length);
  const unknownLinkTypes = new Set<number>();
  let firstNs: bigint | undefined;
  let number = 0;
  let packets = 0;

  for (const captured of reader) {
    if (number % PACKETS_PER_TURN === 0) {
      progress?.update(captured.bytes.byteOffset - bytes.byteOffset, `${number} packets`);
      await output.drained();
      await nextTurn();
      if (output.io.interrupted.aborted) break;
    }
    number++;
    firstNs ??= captured.timestampNs;
    if (!LINK_TYPES.includes(captured.linkType)) unknownLinkTypes.add(captured.linkType);
    const datagram = udpOf(captured);
    if (datagram?.destinationPort !== options.udpPort) continue;
    const place = { number, timeNs: Number(captured.timestampNs - firstNs), interfaceId: captured.interfaceId };
    const opened = keys?.take(captured) ?? captured;
    const asSeen = decodeRoce(datagram, place, options.icrc);
    const packet = opened === captured ? asSeen : openedPacket(asSeen, decodeRoce(udpOf(opened)!, place, options.icrc));
    if (!concerns(packet, options.qp)) continue;
    packets++;
    const events = tracker.observe(packet);
    if (options.flow !== true || events.length > 0) {
      output.line(lines.next(packet, events));
      output.jsonLine(DECODE_LINES, {
        type: 'packet',
        ...packet,
        ...(captured.comment && { comment: captured.comment }),
        events,
      });
    }
    if (packets === options.limit) break;
  }

  progress?.stop();
  const flows = tracker.summaries;
  const damage = reader.damage;
  printSummary(output, flows, packets, number - packets);
  if (keys !== undefined) output.line(openedWords(keys.packets));
  output.document(DECODE_DOCUMENT, {
    type: 'summary',
    packets,
    otherPackets: number - packets,
    flows,
    ...(keys && { protected: keys.packets }),
    ...(damage && { damage }),
  });
  for (const linkType of unknownLinkTypes) {
    output.note(
      `rocev2: packets of link type ${linkType} are left out; decode reads Ethernet (1), RAW IP (101) and Linux cooked captures (113, 276)`,
    );
  }
  output.throwIfInterrupted('interrupted: the file was not read to its end');
  failIfDamaged(path, damage);
}

async function traceStory(path: string, bytes: Buffer, options: DecodeOptions, output: Output): Promise<void> {
  const { qp, limit, flow } = options;
  try {
    await decodeTrace(bytes.toString(), { qpn: qp, limit, onlyNews: flow === true }, output);
  } catch (cause) {
    throw new CommandFailure(EXIT_FAILED, `${path} is damaged at ${(cause as Error).message}`, { cause });
  }
  output.throwIfInterrupted('interrupted: the file was not read to its end');
}

function openedPacket({ psp, ...asSeen }: DecodedPacket, opened: DecodedPacket): DecodedPacket {
  const { bth: _, ...header } = psp!;
  return { ...opened, lengthBytes: asSeen.lengthBytes, psp: header };
}

function openCapture(path: string, bytes: Uint8Array): CaptureReader {
  try {
    return new CaptureReader(bytes);
  } catch (cause) {
    throw new CommandFailure(EXIT_FAILED, `cannot decode ${path}: ${(cause as Error).message}`, { cause });
  }
}

function concerns(packet: DecodedPacket, qpn: number | undefined): boolean {
  return qpn === undefined || packet.bth?.destQpn === qpn || packet.deth?.sourceQpn === qpn;
}

type SummaryColumn = Column & { readonly value: (flow: FlowSummary) => string | number };

const INTERFACE_COLUMN: SummaryColumn = { title: 'Interface', align: 'right', value: (flow) => flow.interfaceId };

const SUMMARY_COLUMNS: readonly SummaryColumn[] = [
  { title: 'Flow', align: 'left', value: (flow) => `${flow.source} -> ${flow.destination}` },
  { title: 'QPN', align: 'left', value: (flow) => sixDigits(flow.destQpn) },
  { title: 'Packets', align: 'right', value: (flow) => flow.packets },
  { title: 'Bytes', align: 'right', value: (flow) => flow.payloadBytes },
  { title: 'Resent', align: 'right', value: (flow) => flow.retransmitted },
  { title: 'Gaps', align: 'right', value: (flow) => flow.gaps },
  { title: 'Missing PSNs', align: 'right', value: (flow) => flow.missingPsns },
  { title: 'NAKs', align: 'right', value: (flow) => flow.naks },
  { title: 'RNR NAKs', align: 'right', value: (flow) => flow.rnrNaks },
  { title: 'CNPs', align: 'right', value: (flow) => flow.cnps },
  { title: 'CE marks', align: 'right', value: (flow) => flow.ceMarked },
  { title: 'ICRC bad', align: 'right', value: (flow) => flow.icrcBad },
];

function printSummary(output: Output, flows: readonly FlowSummary[], packets: number, otherPackets: number): void {
  if (flows.length > 0) {
    const severalInterfaces = flows.some(({ interfaceId }) => interfaceId !== flows[0].interfaceId);
    const columns = severalInterfaces ? [INTERFACE_COLUMN, ...SUMMARY_COLUMNS] : SUMMARY_COLUMNS;
    output.line();
    output.table(
      columns,
      flows.map((flow) => columns.map((column) => column.value(flow))),
    );
    output.line();
  }
  const others = otherPackets === 0 ? '' : `, ${counted(otherPackets, 'other packet')} left out`;
  output.line(`${counted(packets, 'RoCEv2 packet')} in ${counted(flows.length, 'flow')}${others}`);
}
