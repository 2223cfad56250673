/** The calls of a cluster in the packets of a capture: which host asked which one for what, what it READ, and what was answered, from bytes on the wire alone. */

import type { CapturedPacket } from '../../../../src/port/capture/captured-packet.js';
import { decodeRoce } from '../../../../src/port/capture/decoded-packet.js';
import { udpOf } from '../../../../src/port/capture/udp-in-capture.js';
import { BULK, CALL, ERROR, type Frame, HEADER_BYTES, RESULT, readFrame } from '../../../rpc/src/frame.js';
import { decodeValue } from '../../../rpc/src/value.js';

const ICRC_BYTES = 4;

/** Something that one host sent to another one. */
export interface Message {
  readonly kind: 'call' | 'answer' | 'refusal' | 'read' | 'data';
  /** Indices of the interfaces. */
  readonly from: number;
  readonly to: number;
  /** When its first packet left. */
  readonly sentNs: number;
  /** When its last packet arrived; undefined: it did not. */
  arrivedNs: number | undefined;
  /** Which method; empty: it is not known. */
  method: string;
  /** The request, the answer, or the refusal. */
  value: unknown;
  /** Bytes of a READ. */
  readonly bytes: number;
}

interface Packet {
  readonly from: number;
  readonly to: number;
  readonly timeNs: number;
  readonly operation: string;
  readonly qpn: number;
  readonly psn: number;
  readonly payload: Uint8Array;
  readonly reth: { readonly va: bigint; readonly dmaLength: number } | undefined;
}

/** `addresses`: of the host at each interface. All messages in the order in which they left. */
export function callsIn(captured: readonly CapturedPacket[], addresses: readonly string[]): readonly Message[] {
  const sent: Packet[] = [];
  const arrivals = new Map<string, number>();
  for (const one of captured) {
    const packet = packetOf(one, addresses);
    if (packet === undefined) continue;
    const key = keyOf(packet);
    if (one.interfaceId === packet.to) arrivals.set(key, arrivals.get(key) ?? packet.timeNs);
    else sent.push(packet);
  }
  const calls = new Calls(arrivals);
  const seen = new Set<string>();
  for (const packet of sent) {
    // What is sent again was lost, or its acknowledgement was.
    if (seen.has(keyOf(packet))) continue;
    seen.add(keyOf(packet));
    calls.take(packet);
  }
  return calls.messages;
}

function packetOf(captured: CapturedPacket, addresses: readonly string[]): Packet | undefined {
  const datagram = udpOf(captured);
  if (datagram === undefined) return undefined;
  const timeNs = Number(captured.timestampNs);
  const { bth, reth } = decodeRoce(datagram, { number: 0, timeNs, interfaceId: captured.interfaceId }, false);
  if (bth === undefined) return undefined;
  const end = datagram.payloadBytes - ICRC_BYTES - bth.padBytes;
  return {
    from: addresses.indexOf(datagram.source.text),
    to: addresses.indexOf(datagram.destination.text),
    timeNs,
    operation: bth.operation.replace('RC ', ''),
    qpn: bth.destQpn,
    psn: bth.psn,
    payload: datagram.payload.subarray(end - bth.payloadBytes, end),
    reth,
  };
}

function keyOf({ from, to, qpn, psn, operation }: Packet): string {
  return `${from}>${to} ${qpn} ${psn} ${operation}`;
}

class Calls {
  readonly messages: Message[] = [];
  readonly #arrivals: ReadonlyMap<string, number>;
  /** What has arrived of SENDs of several packets, by queue pair. */
  readonly #parts = new Map<string, { readonly first: Packet; readonly payloads: Uint8Array[] }>();
  /** Calls by the hosts and the number. */
  readonly #open = new Map<string, Message>();
  /** Frames whose body is READ, by where it is. */
  readonly #lent = new Map<string, { readonly frame: Frame; readonly message: Message }>();
  /** READs without their data, by who asked whom, in order. */
  readonly #reads = new Map<string, Array<{ readonly va: bigint; readonly bytes: number }>>();

  constructor(arrivals: ReadonlyMap<string, number>) {
    this.#arrivals = arrivals;
  }

  take(packet: Packet): void {
    const { operation } = packet;
    if (operation.startsWith('SEND')) this.#send(packet);
    else if (operation === 'RDMA_READ_REQUEST') this.#readRequest(packet);
    else if (operation.startsWith('RDMA_READ_RESPONSE')) this.#readResponse(packet);
  }

  /** All of the message of which this is the last packet. */
  #whole(packet: Packet): { readonly first: Packet; readonly payload: Buffer } | undefined {
    const key = `${packet.from}>${packet.to} ${packet.qpn} ${packet.operation.startsWith('SEND') ? 'SEND' : 'READ'}`;
    const message = this.#parts.get(key) ?? { first: packet, payloads: [] };
    message.payloads.push(packet.payload);
    this.#parts.set(key, message);
    if (!/ONLY|LAST/.test(packet.operation)) return undefined;
    this.#parts.delete(key);
    return { first: message.first, payload: Buffer.concat(message.payloads) };
  }

  #add(kind: Message['kind'], first: Packet, last: Packet, bytes: number): Message {
    const { from, to, timeNs: sentNs } = first;
    const arrivedNs = this.#arrivals.get(keyOf(last));
    const message = { kind, from, to, sentNs, arrivedNs, method: '', value: undefined, bytes };
    this.messages.push(message);
    return message;
  }

  #send(packet: Packet): void {
    const whole = this.#whole(packet);
    if (whole === undefined) return;
    const frame = readFrame(whole.payload);
    const kind = ({ [CALL]: 'call', [RESULT]: 'answer', [ERROR]: 'refusal' } as const)[frame.kind];
    if (kind === undefined) return;
    const message = this.#add(kind, whole.first, packet, whole.payload.length);
    const { from, to } = packet;
    if (kind === 'call') this.#open.set(`${from}>${to} ${frame.call}`, message);
    else message.method = this.#open.get(`${to}>${from} ${frame.call}`)?.method ?? '';
    if (frame.flags === BULK) this.#lent.set(`${from}>${to} ${frame.addr}`, { frame, message });
    else learn(message, whole.payload.subarray(HEADER_BYTES));
  }

  #readRequest(packet: Packet): void {
    const { va, dmaLength: bytes } = packet.reth!;
    this.#add('read', packet, packet, bytes);
    const key = `${packet.from}>${packet.to}`;
    this.#reads.set(key, [...(this.#reads.get(key) ?? []), { va, bytes }]);
  }

  #readResponse(packet: Packet): void {
    const whole = this.#whole(packet);
    if (whole === undefined) return;
    const { from, to } = packet;
    const read = this.#reads.get(`${to}>${from}`)?.shift();
    const data = this.#add('data', whole.first, packet, whole.payload.length);
    const lent = read && this.#lent.get(`${from}>${to} ${read.va}`);
    if (lent === undefined) return;
    learn(lent.message, whole.payload);
    data.method = lent.message.method;
  }
}

/** What the body of a frame says. */
function learn(message: Message, body: Buffer): void {
  if (message.kind !== 'call') {
    if (body.length > 0) message.value = decodeValue(body, Infinity).value;
    return;
  }
  message.method = body.subarray(1, 1 + body[0]).toString();
  message.value = decodeValue(body.subarray(1 + body[0]), Infinity).value;
}
