import { defineDocument, defineLines, type Output } from '@rocev2/command';
import type {
  CaptureDamage,
  DecodedBth,
  DecodedPacket,
  FlowEvent,
  FlowSummary,
  IcrcVerdict,
  TraceRecord,
} from 'rocev2/internal/capture';
import { RC_FETCH_ADD } from 'rocev2/internal/packet';
import { ECN_CE } from 'rocev2/internal/port';
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

interface Cells {
  readonly number: string;
  readonly time: string;
  readonly source: string;
  readonly arrow: string;
  readonly destination: string;
  readonly operation: string;
  readonly qpn: string;
  readonly psn: string;
  readonly flags: string;
  readonly bytes: string;
  readonly icrc: string;
  readonly details: string;
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

const ICRC_WORDS: Readonly<Record<IcrcVerdict, string>> = { ok: 'ok', bad: 'BAD', cut: 'cut', unchecked: '-' };

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
    const bth = packet.bth ?? packet.psp?.bth;
    const text = this.#columns({
      number: String(packet.number),
      time: (packet.timeNs / 1e9).toFixed(6),
      source: packet.source,
      arrow: '->',
      destination: packet.destination,
      operation: bth === undefined ? withoutBth(packet) : shortOperation(bth.operation),
      qpn: bth === undefined ? '' : sixDigits(bth.destQpn),
      psn: bth === undefined ? '' : sixDigits(bth.psn),
      flags: bth === undefined ? '' : flags(bth, packet.ecn),
      bytes: String(bth?.payloadBytes ?? packet.lengthBytes),
      icrc: ICRC_WORDS[icrc],
      details: hasNak(packet) ? this.#colors.yellow(details(packet)) : details(packet),
    });
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

function withoutBth({ psp, malformed }: DecodedPacket): string {
  return psp === undefined ? `malformed: ${malformed}` : 'protected, empty';
}

function hasNak({ aeth }: DecodedPacket): boolean {
  return aeth?.kind === 'nak' || aeth?.kind === 'rnr_nak';
}

function describeEvent(event: FlowEvent): string {
  if (event.kind === 'gap') return `gap: ${event.missing} PSN${event.missing === 1 ? '' : 's'} missing before`;
  return event.kind === 'retransmission' ? 'resent' : '';
}

/**
 * The names of the specification, with long words shortened as rxe and perftest do, so that lines fit a wide terminal.
 */
function shortOperation(operation: string): string {
  return operation
    .replace('_WITH_IMMEDIATE', '_IMM')
    .replace('_WITH_INVALIDATE', '_INV')
    .replace('_REQUEST', '_REQ')
    .replace('_RESPONSE', '_RESP');
}

function flags({ ackReq, solicited, migReq, fecn, becn }: DecodedBth, ecn: number): string {
  const set = [
    [ackReq, 'A'],
    [solicited, 'SE'],
    [migReq, 'M'],
    [fecn, 'FECN'],
    [becn, 'BECN'],
    [ecn === ECN_CE, 'CE'],
  ];
  return set.flatMap(([on, name]) => (on ? [name] : [])).join(',');
}

function details(p: DecodedPacket): string {
  const words: string[] = [];
  if (p.psp) words.push(`PSP spi=${hex(p.psp.spi)} phase=${p.psp.phase} iv=${p.psp.iv}`);
  if (p.mad)
    words.push(p.mad.rejectReason ? `${p.mad.name} (${p.mad.rejectReason})` : p.mad.name, `tid=${p.mad.transactionId}`);
  if (p.reth) words.push(`va=${hex(p.reth.va)} rkey=${hex(p.reth.rkey)} len=${p.reth.dmaLength}`);
  if (p.atomicEth) {
    const { va, rkey, swapOrAdd, compare } = p.atomicEth;
    const isAdd = p.bth?.opcode === RC_FETCH_ADD;
    words.push(`va=${hex(va)} rkey=${hex(rkey)}`);
    words.push(isAdd ? `add=${hex(swapOrAdd)}` : `compare=${hex(compare)} swap=${hex(swapOrAdd)}`);
  }
  if (p.aeth) words.push(`${p.aeth.meaning} msn=${p.aeth.msn}`);
  if (p.atomicAckEth) words.push(`original=${hex(p.atomicAckEth.original)}`);
  if (p.deth && !p.mad) words.push(`qkey=${hex(p.deth.qkey)} srcqp=${hex(p.deth.sourceQpn)}`);
  if (p.immediate !== undefined) words.push(`imm=${hex(p.immediate, 8)}`);
  if (p.invalidateRkey !== undefined) words.push(`invalidate rkey=${hex(p.invalidateRkey)}`);
  if (p.sackBytes !== undefined) words.push(`bitmap of ${p.sackBytes * 8} PSNs`);
  if (p.train !== undefined && p.train.count > 0) words.push(`train ${p.train.index + 1}/${p.train.count}`);
  return words.join(' ');
}

export function sixDigits(value: number): string {
  return value.toString(16).padStart(6, '0');
}

function hex(value: number | bigint, digits = 1): string {
  return `0x${value.toString(16).padStart(digits, '0')}`;
}
