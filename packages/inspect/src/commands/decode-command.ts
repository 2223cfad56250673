/** `rocev2 decode`: what is in a capture of RoCEv2 traffic, packet by packet and flow by flow. */

import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  type CliIo,
  type Column,
  CommandFailure,
  counted,
  countOption,
  EXIT_FAILED,
  inputName,
  type Output,
  portOption,
  printing,
  qpnOption,
  readInputFile,
} from '@rocev2/command';
import type { Command } from 'commander';
import {
  type CapturedPacket,
  CaptureReader,
  type DecodedPacket,
  decodeRoce,
  type FlowSummary,
  FlowTracker,
  isTrace,
  LeftOut,
  PacketView,
  SEEN,
  separated,
  udpOf,
} from 'rocev2/internal/capture';
import { ROCE_UDP_PORT } from 'rocev2/internal/port';
import { sixDigits } from '../packet-cells.js';
import { failIfDamaged } from './capture-damage.js';
import { DECODE_DOCUMENT, DECODE_LINES, PacketLines } from './decode-lines.js';
import { decodeTrace } from './decode-trace.js';
import { openedWords, ProtectedCapture } from './protected-capture.js';

const PACKETS_PER_TURN = 512;

type Place = Pick<DecodedPacket, 'number' | 'timeNs' | 'interfaceId'>;

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
    .argument('<file>', 'a capture of any tool, or a trace (docs/events.md); - is standard input')
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
A PSN below the newest PSN of its flow counts as retransmitted; a skipped PSN is
a gap, from the viewpoint of the capture.
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

async function decode(given: string, options: DecodeOptions, output: Output): Promise<void> {
  const bytes = await readInputFile(given);
  const path = inputName(given);
  if (isTrace(bytes)) return traceStory(path, bytes, options, output);
  const reader = openCapture(path, bytes);
  const keys = options.keys === undefined ? undefined : await ProtectedCapture.open(options.keys, [options.udpPort]);
  const tracker = new FlowTracker();
  const lines = new PacketLines(output.colors);
  const progress = output.io.stdout.isTTY ? undefined : output.progress(bytes.length);
  const leftOut = new LeftOut();
  const view = new PacketView();
  const ports = new Set([options.udpPort]);
  let firstNs: bigint | undefined;
  let number = 0;
  let packets = 0;
  let total = 0;
  let roce = 0;

  reading: for (const captured of reader) {
    if (number % PACKETS_PER_TURN === 0) {
      progress?.update(captured.bytes.byteOffset - bytes.byteOffset, `${number} packets`);
      await output.drained();
      await nextTurn();
      if (output.io.interrupted.aborted) break;
    }
    number++;
    firstNs ??= captured.timestampNs;
    const kind = view.read(captured, number, 0);
    if (kind !== SEEN.UDP || view.destinationPort !== options.udpPort) {
      total++;
      if (kind === SEEN.UDP) leftOut.addToOtherPort(view);
      else leftOut.add(kind, captured);
      continue;
    }
    const place = { number, timeNs: Number(captured.timestampNs - firstNs), interfaceId: captured.interfaceId };
    for (const part of separated(captured, ports)) {
      total++;
      roce++;
      const packet = decoded(part, place);
      if (packet.malformed === 'merged_packets') leftOut.inseparable++;
      if (!concerns(packet, options.qp)) continue;
      packets++;
      const events = tracker.observe(packet);
      if (options.flow !== true || events.length > 0) {
        output.line(lines.next(packet, events));
        output.jsonLine(DECODE_LINES, {
          type: 'packet',
          ...packet,
          ...(part.comment && { comment: part.comment }),
          events,
        });
      }
      if (packets === options.limit) break reading;
    }
  }

  function decoded(part: CapturedPacket, place: Place): DecodedPacket {
    const asSeen = decodeRoce(udpOf(part)!, place, options.icrc);
    const [opened] = keys?.take(part) ?? [part];
    return opened === part ? asSeen : openedPacket(asSeen, decodeRoce(udpOf(opened)!, place, options.icrc));
  }

  progress?.stop();
  const flows = tracker.summaries;
  const damage = reader.damage;
  printSummary(output, flows, packets, total - packets);
  if (keys !== undefined) output.line(openedWords(keys.packets));
  output.document(DECODE_DOCUMENT, {
    type: 'summary',
    packets,
    otherPackets: total - packets,
    flows,
    ...(keys && { protected: keys.packets }),
    ...(damage && { damage }),
  });
  if (roce > 0) for (const reason of leftOut.reasons) output.note(`rocev2: left out: ${reason}`);
  output.throwIfInterrupted('interrupted: the file was not read to its end');
  failIfDamaged(path, damage);
  if (roce === 0) throw new CommandFailure(EXIT_FAILED, `${path}: ${leftOut.whyNothing(total)}`);
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
