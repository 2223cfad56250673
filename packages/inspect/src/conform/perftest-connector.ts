/**
 * Queue pairs of a perftest server, such as `ib_write_bw`: its exchange over TCP gives a QPN, a PSN, and memory that
 * may be written.
 */

import { type RandomSource, RoceError, randomInt } from 'rocev2/internal/core';
import { PSN_MASK } from 'rocev2/internal/packet';
import type { PerftestExchange } from 'rocev2/internal/stock-exchanges';
import { TimedInbox } from './inbox.js';
import type { Offer } from './offer.js';
import { TESTER_MEMORY } from './order.js';
import type { ConnectionTerms, ConnectOutcome, Connector } from './peer.js';
import type { Received, TestWire } from './wire.js';

const QPN_MIN = 0x100;
/** `ib_write_bw` without options has room for one message of this size at least. */
const MESSAGE_BYTES = 65_536;
/** Barriers after the keys: one for the queue pair, and one more. */
const BARRIERS = 2;
const NO_REPORT = { sizeBytes: 0n, iterations: 0n, peak: 0, average: 0, messageRate: 0 };

export type OpenExchange = (pathMtu: number) => Promise<PerftestExchange>;

export class PerftestConnector implements Connector {
  readonly via = 'perftest';
  readonly #open: OpenExchange;
  readonly #wire: TestWire;
  readonly #random: RandomSource;

  constructor(open: OpenExchange, wire: TestWire, random: RandomSource) {
    this.#open = open;
    this.#wire = wire;
    this.#random = random;
  }

  lacks({ order, isClosed }: ConnectionTerms): string | undefined {
    if (isClosed !== undefined) return 'a server of perftest always allows WRITEs';
    return order === undefined ? undefined : 'a server of perftest posts nothing when it is asked';
  }

  async connect({ mtu, startPsn: wanted }: ConnectionTerms): Promise<ConnectOutcome> {
    const qpn = randomInt(this.#random, QPN_MIN, PSN_MASK - 1);
    const startPsn = wanted ?? randomInt(this.#random, 0, PSN_MASK);
    const inbox = new TimedInbox<Received>(this.#wire.clock);
    this.#wire.listen(qpn, (received) => inbox.push(received));
    try {
      const exchange = await this.#open(mtu);
      const { address: remoteAddr, key: rkey } = TESTER_MEMORY;
      const own = { outstandingReads: 1, qpn, psn: startPsn, rkey, remoteAddr, address: this.#wire.local };
      const peer = await exchange.exchangeKeys(own);
      for (let i = 0; i < BARRIERS; i++) await exchange.barrier();
      const close = async () => {
        this.#wire.ignore(qpn);
        await leave(exchange);
      };
      const offer = offerOf(peer.remoteAddr, peer.rkey);
      const connection = { mtu, qpn: peer.qpn, startPsn, peerStartPsn: peer.psn, depth: 0, offer, inbox, close };
      return { kind: 'connected', connection };
    } catch (error) {
      this.#wire.ignore(qpn);
      if (error instanceof RoceError) return { kind: 'silent', text: error.message };
      throw error;
    }
  }
}

async function leave(exchange: PerftestExchange): Promise<void> {
  try {
    await exchange.barrier();
    await exchange.exchangeReport(NO_REPORT);
    await exchange.finish();
  } catch (error) {
    if (!(error instanceof RoceError)) throw error;
  }
}

function offerOf(address: bigint, key: number): Offer {
  const nothing = { address: 0n, key: 0 };
  const open = { address, key, bytes: MESSAGE_BYTES };
  return { minRnrTimer: 0, receives: 0, receiveBytes: 0, open, readOnly: nothing, foreign: nothing, isWriteOnly: true };
}
