/**
 * Queue pairs that an agent on the target's host makes, by verbs (src/cli/conform/agent.c has the lines that both
 * send).
 */

import { type RandomSource, randomInt, toHex } from 'rocev2/internal/core';
import { PSN_MASK } from 'rocev2/internal/packet';
import { TimedInbox } from './inbox.js';
import type { Offer } from './offer.js';
import { type Order, TESTER_MEMORY } from './order.js';
import type { ConnectionTerms, ConnectOutcome, Connector, PeerConnection } from './peer.js';
import type { Received, TestWire } from './wire.js';

const QPN_MIN = 0x100;
const DEPTH = 4;
const TIMERS = { timeout: 14, retryCount: 7, rnrRetryCount: 7 };

export interface AgentLink {
  ask(line: string): Promise<string>;
}

export class AgentConnector implements Connector {
  readonly via = 'agent';
  readonly #link: AgentLink;
  readonly #wire: TestWire;
  readonly #random: RandomSource;

  constructor(link: AgentLink, wire: TestWire, random: RandomSource) {
    this.#link = link;
    this.#wire = wire;
    this.#random = random;
  }

  lacks(): undefined {
    return undefined;
  }

  async connect(terms: ConnectionTerms): Promise<ConnectOutcome> {
    const { mtu, order, initiatorDepth = DEPTH, responderResources = DEPTH, isClosed = false } = terms;
    const qpn = randomInt(this.#random, QPN_MIN, PSN_MASK - 1);
    const startPsn = terms.startPsn ?? randomInt(this.#random, 0, PSN_MASK);
    const peerStartPsn = randomInt(this.#random, 0, PSN_MASK);
    const { timeout, retryCount, rnrRetryCount } = order ?? TIMERS;
    const inbox = new TimedInbox<Received>(this.#wire.clock);
    this.#wire.listen(qpn, (received) => inbox.push(received));
    const forget = () => this.#wire.ignore(qpn);
    try {
      const answer = await this.#ask('connect', {
        type: 'rc',
        gid: toHex(this.#wire.local.gid),
        qpn,
        psn: startPsn,
        peer_psn: peerStartPsn,
        mtu,
        timeout,
        retry: retryCount,
        rnr_retry: rnrRetryCount,
        depth: initiatorDepth,
        initiator: responderResources,
        closed: isClosed ? 1 : 0,
      });
      const connection: PeerConnection = {
        mtu,
        qpn: Number(answer('qpn')),
        startPsn,
        peerStartPsn,
        depth: Number(answer('depth')),
        offer: offerOf(answer),
        inbox,
        close: async () => {
          await this.#ask('disconnect', {});
          forget();
        },
      };
      if (order !== undefined) await this.#post(order);
      return { kind: 'connected', connection };
    } catch (error) {
      forget();
      if (error instanceof Refusal) return { kind: 'refused', text: `the agent refuses: ${error.message}` };
      throw error;
    }
  }

  async #post({ operation, bytes, count }: Order): Promise<void> {
    await this.#ask('post', { operation, bytes, count, ...TESTER_MEMORY });
  }

  async #ask(
    verb: string,
    fields: Readonly<Record<string, string | number | bigint>>,
  ): Promise<(name: string) => string> {
    const pairs = Object.entries(fields).map(([name, value]) => `${name}=${value}`);
    const line = await this.#link.ask([verb, ...pairs].join(' '));
    const [status, ...words] = line.trim().split(' ');
    if (status !== 'ok') throw new Refusal(words.join(' '));
    const values = new Map(words.map((word) => word.split('=') as [string, string]));
    return (name) => values.get(name) ?? '0';
  }
}

class Refusal extends Error {}

function offerOf(value: (name: string) => string): Offer {
  const memory = (name: string) => ({ address: BigInt(value(name)), key: Number(value(`${name}_key`)) });
  return {
    minRnrTimer: Number(value('rnr_timer')),
    receives: Number(value('receives')),
    receiveBytes: Number(value('receive_bytes')),
    open: { ...memory('open'), bytes: Number(value('open_bytes')) },
    readOnly: memory('read_only'),
    foreign: memory('foreign'),
    flushes: value('flush') === '1',
  };
}
