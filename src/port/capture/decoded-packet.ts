/** A header is there exactly when the opcode has it. */

import { bigFromU64 } from '../../core/u64.js';
import { RNR_TIMER_NS, syndromeKind } from '../../packet/aeth.js';
import { icrcOfIpPacket } from '../../packet/icrc.js';
import {
  HDR_AETH,
  HDR_ATOMIC_ACK_ETH,
  HDR_ATOMIC_ETH,
  HDR_DETH,
  HDR_FETH,
  HDR_IETH,
  HDR_IMM,
  HDR_RETH,
  HDR_SACK,
  opcodeName,
} from '../../packet/opcode.js';
import {
  isEmptyPsp,
  isPspOfRoce,
  PSP_CLEAR_BYTES,
  PSP_OVERHEAD_BYTES,
  PSP_PREFIX_BYTES,
  pspIvHigh,
  pspIvLow,
  pspPhase,
  pspSpi,
  pspVersion,
} from '../../packet/psp.js';
import { BTH_BYTES, ICRC_BYTES, PARSE_OK, PARSE_REASONS, parseRoce, RocePacket } from '../../packet/roce.js';
import { placementName, selectivityName, syndromeName } from '../../packet/view.js';
import type { TrainPlace } from './captured-packet.js';
import { type DecodedMad, decodeMad } from './decoded-mad.js';
import type { CapturedDatagram } from './udp-in-capture.js';

/** `cut`: the capture does not hold the whole packet; `unchecked`: the caller did not want it checked. */
export type IcrcVerdict = 'ok' | 'bad' | 'cut' | 'unchecked';

/** Base transport header (IBTA vol. 1 §9.2). */
export interface DecodedBth {
  /** 0..255. */
  readonly opcode: number;
  /** Transport and operation, e.g. `RC SEND_ONLY`. */
  readonly operation: string;
  /** Asks the receiver for an event. */
  readonly solicited: boolean;
  /** The migration bit. */
  readonly migReq: boolean;
  /** 0..3. */
  readonly padBytes: number;
  /** Partition key, 16 bits. */
  readonly pkey: number;
  /** Forward congestion notification. */
  readonly fecn: boolean;
  /** Backward congestion notification. */
  readonly becn: boolean;
  /** The receiving queue pair, 24 bits. */
  readonly destQpn: number;
  /** The sender asks for an acknowledgement. */
  readonly ackReq: boolean;
  /** Packet sequence number, 24 bits. */
  readonly psn: number;
  /** Without pad. */
  readonly payloadBytes: number;
}

/** Kind of an AETH. */
export type SyndromeKind = 'ack' | 'rnr_nak' | 'nak' | 'reserved';

/** ACK extended header (IBTA vol. 1 §9.7.5.1). */
export interface DecodedAeth {
  /** The byte as in the packet. */
  readonly syndrome: number;
  /** Its upper three bits. */
  readonly kind: SyndromeKind;
  /** For people, e.g. `NAK PSN_SEQUENCE_ERROR`. */
  readonly meaning: string;
  /** Only of an RNR NAK: how long the requester has to wait. */
  readonly rnrTimerNs?: number;
  /** Message sequence number, 24 bits. */
  readonly msn: number;
}

/** What can be read of a packet in PSP without its key (docs/security.md). */
export interface DecodedPsp {
  /** Names the association to its receiver, 31 bits. */
  readonly spi: number;
  /** 0 or 1: which of two keys it has. */
  readonly phase: number;
  /** 0: AES-128-GCM, 1: AES-256-GCM. */
  readonly version: number;
  /** The counter of the packet, 64 bits. */
  readonly iv: bigint;
  /**
   * Of a packet that was not opened: unencrypted, and authenticated for holders of the key. An empty packet has none.
   */
  readonly bth?: DecodedBth;
}

/** Position of a packet in its file. */
export interface CapturePlace {
  /** Counts all packets of the file from 1, as Wireshark does. */
  readonly number: number;
  /** Since the first packet of the file. */
  readonly timeNs: number;
  /** Index of the interface in its section. */
  readonly interfaceId: number;
}

/** A datagram to the RoCE port, well formed or not. */
export interface DecodedPacket extends CapturePlace {
  /** IP address of the sender. */
  readonly source: string;
  /** IP address of the receiver. */
  readonly destination: string;
  /** UDP port of the sender. */
  readonly sourcePort: number;
  /** UDP port of the receiver. */
  readonly destinationPort: number;
  /** ECN codepoint 0..3. */
  readonly ecn: number;
  /** Of the UDP payload: BTH .. ICRC. */
  readonly lengthBytes: number;
  /** Of a packet that segmentation offload had merged with others in the file: its position among them. */
  readonly train?: TrainPlace;
  /** Result of the ICRC check. */
  readonly icrc: IcrcVerdict;
  /**
   * Why the packet cannot be decoded further: one of PARSE_REASONS, or `cut_in_headers`, `fragment`, `lengths_differ`
   * (IP and UDP), `merged_packets` (by segmentation offload, without their ends).
   */
  readonly malformed?: string;
  /** There if the packet is protected; the rest is encrypted then, unless it was opened with keys. */
  readonly psp?: DecodedPsp;
  /** There unless the packet is malformed, or protected and not opened. */
  readonly bth?: DecodedBth;
  /** FLUSH extended header: placement type and selectivity level, for people. */
  readonly feth?: { readonly placement: string; readonly level: string };
  /** RDMA extended header: where, with which key, how many bytes. */
  readonly reth?: { readonly va: bigint; readonly rkey: number; readonly dmaLength: number };
  /** Of acknowledgements and READ responses. */
  readonly aeth?: DecodedAeth;
  /** Atomic extended header: where, with which key, both operands. */
  readonly atomicEth?: {
    readonly va: bigint;
    readonly rkey: number;
    readonly swapOrAdd: bigint;
    readonly compare: bigint;
  };
  /** Atomic ACK extended header: the value before. */
  readonly atomicAckEth?: { readonly original: bigint };
  /** Datagram extended header: Q_Key and sender's QPN. */
  readonly deth?: { readonly qkey: number; readonly sourceQpn: number };
  /** Immediate data, 32 bits. */
  readonly immediate?: number;
  /** Key that the receiver is to invalidate. */
  readonly invalidateRkey?: number;
  /** Bytes of the bitmap of a SACK. */
  readonly sackBytes?: number;
  /** Of datagrams to QP1. */
  readonly mad?: DecodedMad;
}

const scratch = new RocePacket();

export function decodeRoce(datagram: CapturedDatagram, place: CapturePlace, verifyIcrc: boolean): DecodedPacket {
  const isCut = datagram.payload.length < datagram.payloadBytes;
  const common = {
    ...place,
    source: datagram.source.text,
    destination: datagram.destination.text,
    sourcePort: datagram.sourcePort,
    destinationPort: datagram.destinationPort,
    ecn: datagram.ecn,
    lengthBytes: datagram.payloadBytes,
    ...(datagram.train && { train: datagram.train }),
    icrc: isCut ? 'cut' : verifyIcrc ? verdict(datagram) : 'unchecked',
  } as const;
  const { malformed } = datagram;
  if (malformed !== undefined) return { ...common, icrc: isCut ? 'cut' : 'unchecked', malformed };

  const bytes = isCut ? withZeros(datagram.payload, datagram.payloadBytes) : datagram.payload;
  if (isPspOfRoce(bytes, 0, bytes.length)) {
    return { ...common, icrc: isCut ? 'cut' : 'unchecked', psp: pspOf(bytes) };
  }
  const reason = parseRoce(bytes, 0, bytes.length, scratch);
  if (reason !== PARSE_OK) return { ...common, malformed: PARSE_REASONS[reason] };
  if (datagram.payload.length < BTH_BYTES + scratch.info.extBytes) return { ...common, malformed: 'cut_in_headers' };
  return { ...common, ...headersOf(scratch, bytes) };
}

function pspOf(bytes: Uint8Array): DecodedPsp {
  const header = {
    spi: pspSpi(bytes, 0),
    phase: pspPhase(bytes, 0),
    version: pspVersion(bytes, 0),
    iv: bigFromU64(pspIvHigh(bytes, 0), pspIvLow(bytes, 0)),
  };
  if (isEmptyPsp(bytes, 0, bytes.length)) return header;
  // Zeros replace the encrypted part: of the headers only the BTH counts.
  const inClear = withZeros(bytes.subarray(PSP_PREFIX_BYTES, PSP_CLEAR_BYTES), bytes.length - PSP_OVERHEAD_BYTES);
  const { bth } = parseRoce(inClear, 0, inClear.length, scratch) === PARSE_OK ? headersOf(scratch, inClear) : {};
  return { ...header, ...(bth !== undefined && { bth }) };
}

/** Replaces the part that was not captured, so that lengths and headers still decode. */
function withZeros(captured: Uint8Array, length: number): Uint8Array {
  const whole = new Uint8Array(length);
  whole.set(captured);
  return whole;
}

function verdict({ ipPacket, udpOffset, payloadBytes }: CapturedDatagram): IcrcVerdict {
  if (payloadBytes < BTH_BYTES + ICRC_BYTES) return 'bad';
  const { computed, carried } = icrcOfIpPacket(ipPacket, udpOffset);
  return computed === carried ? 'ok' : 'bad';
}

function headersOf(p: RocePacket, bytes: Uint8Array): Partial<DecodedPacket> {
  const { headers } = p.info;
  const isGsi = p.destQpn === 1 && (headers & HDR_DETH) !== 0;
  const mad = isGsi ? decodeMad(bytes.subarray(p.payloadOffset, p.payloadOffset + p.payloadBytes)) : undefined;
  return {
    bth: {
      opcode: p.opcode,
      operation: opcodeName(p.opcode),
      solicited: p.solicited,
      migReq: p.migReq,
      padBytes: p.padBytes,
      pkey: p.pkey,
      fecn: p.fecn,
      becn: p.becn,
      destQpn: p.destQpn,
      ackReq: p.ackReq,
      psn: p.psn,
      payloadBytes: headers & HDR_SACK ? 0 : p.payloadBytes,
    },
    ...(headers & HDR_FETH && { feth: { placement: placementName(p.feth), level: selectivityName(p.feth) } }),
    ...(headers & HDR_RETH && { reth: { va: bigFromU64(p.vaHigh, p.vaLow), rkey: p.rkey, dmaLength: p.dmaLength } }),
    ...(headers & HDR_AETH && { aeth: { ...describeSyndrome(p.syndrome), msn: p.msn } }),
    ...(headers & HDR_ATOMIC_ETH && {
      atomicEth: {
        va: bigFromU64(p.vaHigh, p.vaLow),
        rkey: p.rkey,
        swapOrAdd: bigFromU64(p.swapHigh, p.swapLow),
        compare: bigFromU64(p.compareHigh, p.compareLow),
      },
    }),
    ...(headers & HDR_ATOMIC_ACK_ETH && { atomicAckEth: { original: bigFromU64(p.origHigh, p.origLow) } }),
    ...(headers & HDR_DETH && { deth: { qkey: p.qkey, sourceQpn: p.sourceQpn } }),
    ...(headers & HDR_IMM && { immediate: p.immediate }),
    ...(headers & HDR_IETH && { invalidateRkey: p.invalidateRkey }),
    ...(headers & HDR_SACK && { sackBytes: p.payloadBytes }),
    ...(mad !== undefined && { mad }),
  };
}

const SYNDROME_KINDS: readonly SyndromeKind[] = ['ack', 'rnr_nak', 'reserved', 'nak'];

function describeSyndrome(syndrome: number): Omit<DecodedAeth, 'msn'> {
  const kind = SYNDROME_KINDS[syndromeKind(syndrome)];
  return {
    syndrome,
    kind,
    meaning: syndromeName(syndrome),
    ...(kind === 'rnr_nak' && { rnrTimerNs: RNR_TIMER_NS[syndrome & 0x1f] }),
  };
}
