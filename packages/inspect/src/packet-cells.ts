/** A packet of a capture as the cells of a table. */

import type { DecodedBth, DecodedPacket, IcrcVerdict } from 'rocev2/internal/capture';
import { RC_FETCH_ADD } from 'rocev2/internal/packet';
import { ECN_CE } from 'rocev2/internal/port';

export interface PacketCells {
  readonly number: string;
  /** In seconds. */
  readonly time: string;
  readonly source: string;
  readonly destination: string;
  readonly operation: string;
  readonly qpn: string;
  readonly psn: string;
  readonly flags: string;
  readonly bytes: string;
  readonly icrc: string;
  readonly details: string;
}

const ICRC_WORDS: Readonly<Record<IcrcVerdict, string>> = { ok: 'ok', bad: 'BAD', cut: 'cut', unchecked: '-' };

export function packetCells(packet: DecodedPacket): PacketCells {
  const bth = packet.bth ?? packet.psp?.bth;
  return {
    number: String(packet.number),
    time: (packet.timeNs / 1e9).toFixed(6),
    source: packet.source,
    destination: packet.destination,
    operation: bth === undefined ? withoutBth(packet) : shortOperation(bth.operation),
    qpn: bth === undefined ? '' : sixDigits(bth.destQpn),
    psn: bth === undefined ? '' : sixDigits(bth.psn),
    flags: bth === undefined ? '' : flags(bth, packet.ecn),
    bytes: String(bth?.payloadBytes ?? packet.lengthBytes),
    icrc: ICRC_WORDS[packet.icrc],
    details: details(packet),
  };
}

function withoutBth({ psp, malformed }: DecodedPacket): string {
  return psp === undefined ? `malformed: ${malformed}` : 'protected, empty';
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
  if (p.feth) words.push(`${p.feth.placement} of ${p.feth.level}`);
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
