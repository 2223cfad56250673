/** The packets of one connection, both ways, with the time when each arrives or the fact that it does not. */

import type { Flow, ScenarioRun } from '@rocev2/lab/internal/page';
import {
  FRAME_OK,
  FrameInfo,
  HDR_AETH,
  type IpAddress,
  OPCODES,
  opcodeName,
  parseFrame,
  SYNDROME_KIND_NAK,
  syndromeKind,
} from 'rocev2/packet';

export const FROM_RECEIVER = 1;
export const REPEATED = 2;
export const NAK = 4;
export const LOST = 8;

const PACKETS_MAX = 400_000;
const [OPCODE, QPN, PSN, AETH] = [0, 5, 9, 12];

/** Packets as columns, in the order in which they left. */
export interface PacketColumns {
  readonly sentNs: Float64Array;
  /** NaN where it was lost, or had not arrived yet. */
  readonly arrivedNs: Float64Array;
  readonly psn: Uint32Array;
  readonly opcode: Uint8Array;
  readonly flags: Uint8Array;
  /** By opcode. */
  readonly operations: Readonly<Record<number, string>>;
}

/** An end of the connection. */
interface LoggedEnd {
  readonly address: IpAddress;
  readonly qpn: number;
}

interface Direction {
  readonly flag: number;
  readonly qpn: number;
  /** Packets that have left and not arrived, by their numbers. */
  readonly underWay: number[];
  newestPsn: number;
}

export class PacketLog {
  readonly #sentNs: number[] = [];
  readonly #arrivedNs: number[] = [];
  readonly #psn: number[] = [];
  readonly #opcode: number[] = [];
  readonly #flags: number[] = [];
  readonly #frame = new FrameInfo();
  readonly #source: LoggedEnd;
  readonly #forth: Direction;
  readonly #back: Direction;

  constructor(source: LoggedEnd, sink: LoggedEnd) {
    this.#source = source;
    this.#forth = { flag: 0, qpn: sink.qpn, underWay: [], newestPsn: -1 };
    this.#back = { flag: FROM_RECEIVER, qpn: source.qpn, underWay: [], newestPsn: -1 };
  }

  /** Logs a flow from now on. */
  static ofFlow({ network, events }: ScenarioRun, { plan, sourceQpn, sinkQpn }: Flow): PacketLog {
    const [source, sink] = [network.station(plan.from), network.station(plan.to)];
    const ends = [
      { address: source.address, qpn: sourceQpn },
      { address: sink.address, qpn: sinkQpn },
    ] as const;
    const log = new PacketLog(...ends);
    for (const [i, station] of [source, sink].entries()) {
      station.onFrame = (bytes, offset, length) => log.take(ends[i], events.nowNs, bytes, offset, length);
    }
    return log;
  }

  /** Takes a frame that an end sends or receives, in the order of time. */
  take(end: LoggedEnd, nowNs: number, bytes: Uint8Array, offset = 0, length = bytes.length): void {
    const frame = this.#frame;
    if (parseFrame(bytes, offset, length, frame) !== FRAME_OK) return;
    const bth = frame.payloadOffset;
    const qpn = (bytes[bth + QPN] << 16) | (bytes[bth + QPN + 1] << 8) | bytes[bth + QPN + 2];
    const isSent = end.address.bytes.every((byte, i) => bytes[frame.sourceOffset + i] === byte);
    const direction = (end === this.#source) === isSent ? this.#forth : this.#back;
    if (qpn !== direction.qpn) return;
    if (isSent) this.#sent(direction, nowNs, bytes, bth);
    else this.#arrived(direction, nowNs, bytes, bth);
  }

  get count(): number {
    return this.#sentNs.length;
  }

  /** The packets so far. */
  columns(): PacketColumns {
    const opcodes = [...new Set(this.#opcode)];
    return {
      sentNs: Float64Array.from(this.#sentNs),
      arrivedNs: Float64Array.from(this.#arrivedNs),
      psn: Uint32Array.from(this.#psn),
      opcode: Uint8Array.from(this.#opcode),
      flags: Uint8Array.from(this.#flags),
      operations: Object.fromEntries(opcodes.map((opcode) => [opcode, opcodeName(opcode)])),
    };
  }

  #sent(direction: Direction, nowNs: number, bytes: Uint8Array, bth: number): void {
    if (this.count >= PACKETS_MAX) return;
    const opcode = bytes[bth + OPCODE];
    const psn = psnAt(bytes, bth);
    const hasAeth = ((OPCODES[opcode]?.headers ?? 0) & HDR_AETH) !== 0;
    const isNak = hasAeth && syndromeKind(bytes[bth + AETH]) === SYNDROME_KIND_NAK;
    // Acknowledgements have the numbers of the other direction.
    const isRepeated = direction.flag === 0 && !hasAeth && psn <= direction.newestPsn;
    if (!hasAeth) direction.newestPsn = Math.max(direction.newestPsn, psn);
    direction.underWay.push(this.count);
    this.#sentNs.push(nowNs);
    this.#arrivedNs.push(Number.NaN);
    this.#psn.push(psn);
    this.#opcode.push(opcode);
    this.#flags.push(direction.flag | (isRepeated ? REPEATED : 0) | (isNak ? NAK : 0));
  }

  /** The network keeps the order, so what left before and has not arrived is lost. */
  #arrived({ underWay }: Direction, nowNs: number, bytes: Uint8Array, bth: number): void {
    const [opcode, psn] = [bytes[bth + OPCODE], psnAt(bytes, bth)];
    const place = underWay.findIndex((i) => this.#psn[i] === psn && this.#opcode[i] === opcode);
    if (place < 0) return;
    for (const lost of underWay.splice(0, place)) this.#flags[lost] |= LOST;
    this.#arrivedNs[underWay.shift()!] = nowNs;
  }
}

function psnAt(bytes: Uint8Array, bth: number): number {
  return (bytes[bth + PSN] << 16) | (bytes[bth + PSN + 1] << 8) | bytes[bth + PSN + 2];
}
