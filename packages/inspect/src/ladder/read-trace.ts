import { readTrace, type TraceRecord } from 'rocev2/internal/capture';
import { NS_PER_MS } from 'rocev2/internal/core';
import { OP_ACK, OP_ATOMIC_ACK, OP_READ_REQUEST, OP_READ_RESPONSE, OPCODES, psnDiff } from 'rocev2/internal/packet';
import { ENTRIES_MAX, type LadderEntries, type LadderEntry, opcodeOf } from './ladder-entry.js';

const ENDPOINT = 'this endpoint';
const PEER = 'its peer';

export function readTraceFile(text: string): LadderEntries {
  const reader = new TracePackets();
  let number = 0;
  for (const record of readTrace(text)) reader.take(++number, record);
  const { leftOut } = reader;
  const remarks = leftOut === 0 ? [] : [`${leftOut} packets behind the first ${ENTRIES_MAX} are not shown.`];
  return { packets: reader.packets, remarks };
}

class TracePackets {
  readonly packets: LadderEntry[] = [];
  leftOut = 0;
  readonly #newest = new Map<string, number>();
  readonly #withReads = new Set<string>();
  #notes: string[] = [];
  #startNs: number | undefined;

  take(number: number, { timeMs, name, data }: TraceRecord): void {
    const timeNs = Math.round(timeMs * NS_PER_MS);
    const direction = name === 'roce:packet_sent' ? 'sent' : name === 'roce:packet_received' ? 'received' : undefined;
    if (direction !== undefined) this.#packet(number, timeNs, direction, data);
    else if (name === 'roce:timeout') this.#notes.push('An acknowledgement timeout came before it.');
    else if (name === 'roce:packet_dropped') this.#dropped(data);
  }

  #packet(number: number, timeNs: number, direction: 'sent' | 'received', data: TraceRecord['data']): void {
    const opcode = opcodeOf(String(data['operation']));
    if (opcode === undefined) return;
    if (this.packets.length === ENTRIES_MAX) {
      this.leftOut++;
      return;
    }
    this.#startNs ??= timeNs;
    const destQpn = Number(data['dest_qpn']);
    const psn = Number(data['psn']);
    const isSent = direction === 'sent';
    this.packets.push({
      number,
      timeNs: timeNs - this.#startNs,
      source: isSent ? ENDPOINT : PEER,
      destination: isSent ? PEER : ENDPOINT,
      interfaceId: 0,
      destQpn,
      sourceQpn: undefined,
      opcode,
      psn,
      answer: answerOf(data['syndrome']),
      readBytes: 0,
      ...this.#sequence(`${direction} ${destQpn}`, opcode, psn),
      isLost: false,
      notes: this.#notes.splice(0),
    });
  }

  /** A trace does not tell how many PSNs a READ takes: where there are READs nothing is said to be missing. */
  #sequence(flow: string, opcode: number, psn: number): Pick<LadderEntry, 'isRepeated' | 'missing'> {
    const { kind, transport } = OPCODES[opcode]!;
    const isAcknowledgement = kind === OP_ACK || kind === OP_ATOMIC_ACK;
    if (transport !== 'RC' || isAcknowledgement) return { isRepeated: false, missing: 0 };
    const key = `${flow} ${kind === OP_READ_RESPONSE ? 'responses' : 'requests'}`;
    const newest = this.#newest.get(key);
    const ahead = newest === undefined ? 1 : psnDiff(psn, newest);
    if (ahead > 0) this.#newest.set(key, psn);
    if (kind === OP_READ_REQUEST) this.#withReads.add(flow);
    const knowsSpans = !this.#withReads.has(flow) && kind !== OP_READ_RESPONSE;
    return { isRepeated: ahead <= 0, missing: knowsSpans ? Math.max(0, ahead - 1) : 0 };
  }

  /** The packet is before this record, except for one that a fault rule dropped before the NIC saw it. */
  #dropped({ trigger, direction, dest_qpn: destQpn, psn }: TraceRecord['data']): void {
    const source = direction === 'sent' ? ENDPOINT : PEER;
    const at = this.packets.findLastIndex(
      (packet) => packet.source === source && packet.destQpn === destQpn && packet.psn === psn,
    );
    if (at < 0 || (direction === 'received' && trigger === 'fault_rule')) return;
    const why = trigger === 'fault_rule' ? 'A fault rule took it.' : `The NIC dropped it: ${trigger}.`;
    this.packets[at] = { ...this.packets[at], isLost: true, notes: [...this.packets[at].notes, why] };
  }
}

function answerOf(syndrome: string | number | boolean | undefined): LadderEntry['answer'] {
  if (typeof syndrome !== 'string') return undefined;
  const kind = syndrome.startsWith('NAK') ? 'nak' : syndrome.startsWith('RNR') ? 'rnr_nak' : 'ack';
  return { kind, meaning: syndrome };
}
