/**
 * The catalogue of trace events, from which the event types, the reader's check and docs/events.md follow. Names are
 * `roce:` and snake case, as in qlog (draft-ietf-quic-qlog-main-schema).
 */

interface Field {
  readonly type: 'number' | 'string' | 'boolean';
  readonly doc: string;
  readonly optional: boolean;
}

const number = (doc: string) => ({ type: 'number', doc, optional: false }) as const;
const string = (doc: string) => ({ type: 'string', doc, optional: false }) as const;
const maybeNumber = (doc: string) => ({ type: 'number', doc, optional: true }) as const;
const maybeString = (doc: string) => ({ type: 'string', doc, optional: true }) as const;
const maybeTrue = (doc: string) => ({ type: 'boolean', doc, optional: true }) as const;

const QPN = number('QPN in the packet: of the receiving queue pair');
const PSN = number('packet sequence number, 24 bits');

const PACKET = {
  operation: string('`RC RDMA_WRITE_FIRST`, as the opcode table names it'),
  dest_qpn: QPN,
  psn: PSN,
  payload_length: number('bytes of payload, pad not counted'),
  ack_req: maybeTrue('an acknowledgement is asked for'),
  syndrome: maybeString('of the AETH: `ACK`, `RNR 0.48 ms`, `NAK PSN_SEQUENCE_ERROR`'),
  msn: maybeNumber('message sequence number of the AETH'),
  ecn: maybeNumber('ECN codepoint, if not 0: 1 and 2 are ECT, 3 is Congestion Experienced'),
} as const;

interface EventDeclaration {
  readonly doc: string;
  readonly fields: Readonly<Record<string, Field>>;
}

export const EVENTS = {
  'roce:packet_sent': { doc: 'The NIC has handed a packet to the port.', fields: PACKET },
  'roce:packet_received': { doc: 'The port has handed a packet to the NIC.', fields: PACKET },
  'roce:packet_dropped': {
    doc: 'A packet ended here: a check of the NIC failed, or a fault rule of this endpoint took it.',
    fields: {
      trigger: string('`fault_rule`, or the counter of the NIC that counted it: `rx_icrc_errors`, `rx_drop_no_qp` ...'),
      direction: string('`sent` or `received`'),
      dest_qpn: maybeNumber('where the packet is long enough to have one'),
      psn: maybeNumber('likewise'),
    },
  },
  'roce:nak_sent': {
    doc: 'A negative acknowledgement is among the packets sent.',
    fields: { dest_qpn: QPN, psn: PSN, syndrome: string('which one, RNR included') },
  },
  'roce:nak_received': {
    doc: 'A negative acknowledgement is among the packets received.',
    fields: { dest_qpn: QPN, psn: PSN, syndrome: string('which one, RNR included') },
  },
  'roce:retransmission': {
    doc: 'The sender went back: it sends a PSN again, or an earlier one, and continues from there.',
    fields: { dest_qpn: QPN, psn: number('where it continues'), newest_psn: number('the newest it had sent') },
  },
  'roce:timeout': {
    doc: 'Acknowledgements were waited for in vain.',
    fields: { count: number('timeouts since the last such event') },
  },
  'roce:cnp_sent': { doc: 'A congestion notification was sent: marked packets had come.', fields: { dest_qpn: QPN } },
  'roce:cnp_received': {
    doc: 'A congestion notification was received: packets of this endpoint were marked.',
    fields: { dest_qpn: QPN },
  },
  'roce:rate_updated': {
    doc: 'A queue pair under rate control may send at another rate. Looked at once a millisecond while packets are sent.',
    fields: {
      qpn: number('of the sending queue pair'),
      rate: number('bits/s of the link'),
      alpha: maybeNumber('DCQCN’s estimate of congestion, 0 to 1'),
    },
  },
  'roce:records_lost': {
    doc: 'The disk was slower than the traffic: events are missing here.',
    fields: { count: number('of them') },
  },
} as const satisfies Readonly<Record<string, EventDeclaration>>;

export type EventName = keyof typeof EVENTS;

interface ValueTypes {
  readonly number: number;
  readonly string: string;
  readonly boolean: boolean;
}
type Fields<N extends EventName> = (typeof EVENTS)[N]['fields'];
type ValueOf<F> = F extends { readonly type: infer T extends keyof ValueTypes } ? ValueTypes[T] : never;

export type EventData<N extends EventName> = {
  readonly [K in keyof Fields<N> as Fields<N>[K] extends { optional: false } ? K : never]: ValueOf<Fields<N>[K]>;
} & {
  readonly [K in keyof Fields<N> as Fields<N>[K] extends { optional: true } ? K : never]?: ValueOf<Fields<N>[K]>;
};

export function eventProblem(name: string, data: Readonly<Record<string, unknown>>): string | undefined {
  if (!Object.hasOwn(EVENTS, name)) return `there is no event ${name}`;
  const fields: Readonly<Record<string, Field>> = EVENTS[name as EventName].fields;
  const missing = Object.keys(fields).find((field) => !fields[field].optional && !(field in data));
  if (missing !== undefined) return `${name} lacks ${missing}`;
  for (const [field, value] of Object.entries(data)) {
    if (!Object.hasOwn(fields, field)) return `${name} has no ${field}`;
    const type: string = typeof value;
    if (type !== fields[field].type) return `${field} of ${name} is not a ${fields[field].type}`;
  }
  return undefined;
}
