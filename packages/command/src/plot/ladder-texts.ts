/** The texts of the ladder in English. `{name}` is replaced. A page in another language has others. */

export const LADDER_TEXTS = {
  none: 'No packets in this time.',
  choose: 'Choose a packet to read about it.',
  first: 'The first {shown} of {count} packets in this time.',
  later: '{time} later',
  list: 'packets in the order of time',
  ladder: 'ladder of packets',
  packet: 'Packet {number}: {operation}',
  place: '{place} of the connection (PSN {psn})',
  at: '{way}, at {time}',
  took: 'there after {time}',
  data: 'new data',
  repeated: 'retransmitted',
  request: 'READ request',
  ack: 'ACK',
  nak: 'NAK',
  cnp: 'CNP',
  dropped: 'lost',
} as const;

export type LadderTexts = Readonly<Record<keyof typeof LADDER_TEXTS, string>>;

/** A text with names replaced by values. */
export function filled(text: string, values: Readonly<Record<string, string>>): string {
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => values[name] ?? whole);
}
