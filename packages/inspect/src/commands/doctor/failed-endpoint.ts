import { formatNs } from 'rocev2/internal/core';
import type { Dump, DumpedPacket } from 'rocev2/internal/estats';
import { type Check, check } from './check.js';

const REQUEST_AGAIN_MIN = 2;

export function checkFailure(dump: Dump): Check {
  const { conn, op, status, time } = dump;
  const [cause, advice] = causeOf(dump);
  return check(
    'endpoint',
    'failed',
    `connection ${conn} at ${time}: ${op} ended with ${status}. ${facts(dump)} ${cause}`,
    advice,
  );
}

function facts({ packets }: Dump): string {
  const stuck = stuckRequest(packets);
  const heard = packets.findLast(({ direction }) => direction === 'received');
  const sent =
    stuck === undefined
      ? 'No request is among the last packets.'
      : `PSN 0x${hex(stuck.packet.psn)} (${stuck.packet.opcode}, ${stuck.packet.bytes} bytes) was sent ${times(stuck.count)}.`;
  const last =
    heard === undefined
      ? 'Nothing was heard from the peer.'
      : `Last heard ${formatNs(heard.agoNs)} before: ${heard.opcode}${heard.answer === undefined ? '' : ` (${heard.answer})`} for PSN 0x${hex(heard.psn)}.`;
  return `${sent} ${last}`;
}

function causeOf(dump: Dump): [cause: string, advice: string] {
  const { status, packets, totals, device } = dump;
  switch (status) {
    case 'RNR_RETRY_EXC_ERR':
      return [
        'The peer has no receive for this message.',
        'post more receives there, or raise rnr_retry (7: without end)',
      ];
    case 'REM_ACCESS_ERR':
      return [
        'The peer refused the key, the range or the right.',
        'compare remoteAddr, length and rkey with the region that the peer registered',
      ];
    case 'REM_INV_REQ_ERR':
      return [
        'The peer refused the request itself.',
        'is the message longer than the receive, or the operation not allowed there?',
      ];
    case 'REM_OP_ERR':
      return ['The peer failed while it worked on the request.', 'look at the completions of the peer'];
    case 'RETRY_EXC_ERR':
      break;
    default:
      return ['The request failed on this side.', 'look at the first work request that failed: later ones are flushed'];
  }
  if (totals.counters.rx_packets === 0) {
    return (device.rx_icrc_errors ?? 0) > 0
      ? ['Packets came, but with a wrong ICRC.', 'look for NAT or tunnels on the way']
      : ['The peer has never answered.', 'check address and QPN, firewalls, and that the peer has reached RTR'];
  }
  const stuck = stuckRequest(packets);
  const heard = packets.findLast(({ direction }) => direction === 'received');
  if (stuck !== undefined && stuck.firstAgoNs > (heard?.agoNs ?? Number.POSITIVE_INFINITY)) {
    const largestAnswered = largestBefore(packets, stuck.packet);
    if (stuck.packet.bytes > largestAnswered && largestAnswered > 0) {
      return [
        `The peer lives, but this packet does not arrive; the largest one that did has ${largestAnswered} bytes.`,
        'lower the path MTU of the connection, or raise the MTU of the links (rocev2 doctor HOST --port P)',
      ];
    }
    return ['The peer lives, but does not acknowledge this PSN.', 'capture at the peer, and rocev2 audit the capture'];
  }
  return [
    'The peer fell silent: its program or host is gone, or the network is cut.',
    'the checks of the path above tell which: is the port open, does anything answer?',
  ];
}

interface StuckRequest {
  readonly packet: DumpedPacket;
  readonly count: number;
  readonly firstAgoNs: number;
}

function stuckRequest(packets: readonly DumpedPacket[]): StuckRequest | undefined {
  const sent = packets.filter(({ direction, answer }) => direction === 'sent' && answer === undefined);
  const byPsn = groupedByPsn(sent);
  let stuck: StuckRequest | undefined;
  for (const copies of byPsn.values()) {
    if (copies.length < REQUEST_AGAIN_MIN || copies.length <= (stuck?.count ?? 0)) continue;
    stuck = { packet: copies[0], count: copies.length, firstAgoNs: copies[0].agoNs };
  }
  const newest = sent.at(-1);
  if (stuck !== undefined || newest === undefined) return stuck;
  return { packet: newest, count: 1, firstAgoNs: newest.agoNs };
}

function groupedByPsn(packets: readonly DumpedPacket[]): Map<number, DumpedPacket[]> {
  const groups = new Map<number, DumpedPacket[]>();
  for (const packet of packets) groups.set(packet.psn, [...(groups.get(packet.psn) ?? []), packet]);
  return groups;
}

function largestBefore(packets: readonly DumpedPacket[], { psn }: DumpedPacket): number {
  const before = packets.filter(
    (one) =>
      one.direction === 'sent' &&
      one.answer === undefined &&
      ((psn - one.psn) & 0xffffff) - 1 < 0x7fffff &&
      one.psn !== psn,
  );
  return Math.max(0, ...before.map(({ bytes }) => bytes));
}

function hex(psn: number): string {
  return psn.toString(16).padStart(6, '0');
}

function times(count: number): string {
  return count === 1 ? 'once' : `${count} times`;
}
