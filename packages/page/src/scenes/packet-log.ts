/** The packets of one flow, both ways, with the time when each arrives or the fact that it does not. */

import type { Flow, ScenarioRun } from '@rocev2/lab/internal/page';
import {
  FRAME_OK,
  FrameInfo,
  HDR_AETH,
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

  constructor(run: ScenarioRun, flow: Flow) {
    const forth: Direction = { flag: 0, qpn: flow.sinkQpn, underWay: [], newestPsn: -1 };
    const back: Direction = { flag: FROM_RECEIVER, qpn: flow.sourceQpn, underWay: [], newestPsn: -1 };
    for (const [host, leaving, arriving] of [
      [flow.plan.from, forth, back],
      [flow.plan.to, back, forth],
    ] as const) {
      const station = run.network.station(host);
      station.onFrame = (bytes, offset, length) => {
        if (parseFrame(bytes, offset, length, this.#frame) !== FRAME_OK) return;
        const bth = this.#frame.payloadOffset;
        const qpn = (bytes[bth + QPN] << 16) | (bytes[bth + QPN + 1] << 8) | bytes[bth + QPN + 2];
        const isSent = station.mac.every((byte, i) => bytes[this.#frame.sourceMacOffset + i] === byte);
        if (isSent && qpn === leaving.qpn) this.#sent(leaving, run.events.nowNs, bytes, bth);
        else if (!isSent && qpn === arriving.qpn) this.#arrived(arriving, run.events.nowNs, bytes, bth);
      };
    }
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
    const isRepeated = direction.flag === 0 && psn <= direction.newestPsn;
    direction.newestPsn = Math.max(direction.newestPsn, psn);
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
