// @ts-check
/**
 * Everything that the bench does to a server. An attack has a name, a title for the table, `run`, which the attacker process executes until
 * `going()` is false, and `achieved`, which the bench asks afterwards: a text for the table, and whether the attacker got what he wanted.
 *
 * @typedef {{server: string, client: string, stranger: string, tcpPort: number, udpPort: number, cmPort: number, http?: string, pcap?: string,
 *   region: {addr: string, rkey: number}, serverQp: {qpn: number, rqPsn: number, sqPsn: number},
 *   clientQp: {qpn: number, rqPsn: number, sqPsn: number, sourcePort: number}, going: () => boolean}} Facts
 * @typedef {{seen: any, state: any, before: any, after: any, memory: string, goodputRatio: number, rateBps: number}} Outcome
 * @typedef {{name: string, title: string, from: string, recovery?: string, rateControl?: object, http?: boolean, pcap?: boolean,
 *   paused?: boolean, run: (facts: Facts) => Promise<any>, achieved: (outcome: Outcome) => {text: string, won: boolean}}} Attack
 */

import { CM_ATTACKS } from './attacks/cm.js';
import { EXCHANGE_ATTACKS } from './attacks/exchange.js';
import { HTTP_ATTACKS } from './attacks/http.js';
import { PACKET_ATTACKS } from './attacks/packets.js';

/** All attacks on a running server. @type {Attack[]} */
export const ATTACKS = [...EXCHANGE_ATTACKS, ...CM_ATTACKS, ...PACKET_ATTACKS, ...HTTP_ATTACKS];
