import { element } from './dom.js';

const KINDS = [
  ['data', 'new data'],
  ['repeated', 'retransmitted'],
  ['request', 'READ request'],
  ['ack', 'ACK'],
  ['nak', 'NAK'],
  ['cnp', 'CNP'],
  ['dropped', 'lost'],
] as const;

/** The colours of packets, which the packet player and the ladder share. */
export function packetLegend(): HTMLElement[] {
  return KINDS.map(([kind, text]) => element('span', {}, element('span', { class: `key ${kind}` }), text));
}
