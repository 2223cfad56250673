import { LADDER_TEXTS, type LadderTexts } from '../messages/ladder-texts.js';
import { element } from './dom.js';

const KINDS = ['data', 'repeated', 'request', 'ack', 'nak', 'cnp', 'dropped'] as const;

/** The colours of packets, which the packet player and the ladder share. */
export function packetLegend(texts: LadderTexts = LADDER_TEXTS): HTMLElement[] {
  return KINDS.map((kind) => element('span', {}, element('span', { class: `key ${kind}` }), texts[kind]));
}
