import { defineDocument, defineLines, type Output } from '@rocev2/command';
import type { CaptureDamage, DecodedPacket, FlowEvent, FlowSummary, TraceRecord } from 'rocev2/internal/capture';
import { type PacketCells, packetCells } from '../packet-cells.js';
import type { OpenedPackets } from './protected-capture.js';

/** The last line of `decode --json`, the only one with a head. */
interface DecodeSummary {
  /** Type of the line. */
  readonly type: 'summary';
  /** Capture: number of RoCEv2 packets, including those that --flow leaves out. */
  readonly packets?: number;
  /** Capture: number of other packets. */
  readonly otherPackets?: number;
  /** Capture: one entry for each flow, that is, each direction to a queue pair. */
  readonly flows?: readonly FlowSummary[];
  /** Capture, with --keys: what the keys made of protected packets. */
  readonly protected?: OpenedPackets;
  /** Capture: where and why the file cannot be read further; missing for an intact file. */
  readonly damage?: CaptureDamage;
  /** Trace: how often each event happened, by name. */
  readonly events?: Readonly<Record<string, number>>;
}

/** A line of `decode --json` for a packet of a capture. 64-bit values are decimal strings. */
interface PacketLine extends DecodedPacket {
  /** Type of the line. */
  readonly type: 'packet';
  /** Comment of the packet in the file. */
  readonly comment?: string;
  /** Events at this packet, such as gaps and retransmissions. */
  readonly events: readonly FlowEvent[];
}

/** A line of `decode --json` for an event of a trace. */
interface EventLine extends TraceRecord {
  /** Type of the line. */
  readonly type: 'event';
}

/** What `decode --json` prints for each packet or event. */
export const DECODE_LINES = defineLines<PacketLine | EventLine>('decode-line');
/** What `decode --json` prints at the end. */
export const DECODE_DOCUMENT = defineDocument<DecodeSummary>('decode');

type Colors = Output['colors'];

const OPERATION_WIDTH = 24;

interface Cells extends PacketCells {
  readonly arrow: string;
}

const TITLES: Cells = {
  number: 'No.',
  time: 'Time s',
  source: 'Source',
  arrow: '  ',
  destination: 'Destination',
  operation: 'Operation',
  qpn: 'QPN',
  psn: 'PSN',
  flags: 'Flags',
  bytes: 'Bytes',
  icrc: 'ICRC',
  details: 'Details',
};

/** The column width follows the longest address so far, so that a capture can be streamed. */
export class PacketLines {
  readonly #colors: Colors;
  #addressWidth = 0;

  constructor(colors: Colors) {
    this.#colors = colors;
  }

  next(packet: DecodedPacket, events: readonly FlowEvent[]): string {
    const isFirst = this.#addressWidth === 0;
    this.#addressWidth = Math.max(this.#addressWidth, packet.source.length, packet.destination.length);
    const line = this.#packetLine(packet, events);
    return isFirst ? `${this.#colors.bold(this.#columns(TITLES))}\n${line}` : line;
  }

  #packetLine(packet: DecodedPacket, events: readonly FlowEvent[]): string {
    const { icrc } = packet;
    const cells = packetCells(packet);
    const details = hasNak(packet) ? this.#colors.yellow(cells.details) : cells.details;
    const text = this.#columns({ ...cells, arrow: '->', details });
    const story = events.map(describeEvent).filter((words) => words !== '');
    const line = [text, ...story.map((words) => this.#colors.yellow(`[${words}]`))].join('  ').trimEnd();
    return icrc === 'bad' || packet.malformed !== undefined ? this.#colors.red(line) : line;
  }

  #columns(cells: Cells): string {
    const width = this.#addressWidth;
    const fixed = [
      `${cells.number.padStart(5)} ${cells.time.padStart(10)}`,
      `${cells.source.padEnd(width)} ${cells.arrow} ${cells.destination.padEnd(Math.max(width, TITLES.destination.length))}`,
      cells.operation.padEnd(OPERATION_WIDTH),
      cells.qpn.padEnd(6),
      cells.psn.padEnd(6),
      cells.flags.padEnd(5),
      cells.bytes.padStart(5),
      cells.icrc.padEnd(4),
    ];
    return `${fixed.join('  ')}  ${cells.details}`.trimEnd();
  }
}

function hasNak({ aeth }: DecodedPacket): boolean {
  return aeth?.kind === 'nak' || aeth?.kind === 'rnr_nak';
}

function describeEvent(event: FlowEvent): string {
  if (event.kind === 'gap') return `gap: ${event.missing} PSN${event.missing === 1 ? '' : 's'} missing before`;
  return event.kind === 'retransmission' ? 'resent' : '';
}
