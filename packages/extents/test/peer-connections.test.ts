/** Connections to peers in virtual time: those that are being made when a program ends, and those that carry nothing any more. */

import { describe, expect, it } from 'vitest';
import { RoceError } from '../../../src/core/errors.js';
import { pass, settle, until } from '../../../test/support/virtual-time.js';
import { EventQueue } from '../../lab/src/sim/event-queue.js';
import type { ConnectLimits, PeerClient, PeerConnector } from '../src/live/peer-connector.js';
import { Peers } from '../src/live/peers.js';

const CALL_MS = 12_000;
const PROOF_MS = 2_000;
const MS = 1e6;
const closed = () => new RoceError('ERR_ROCE_CLOSED', 'the connection is closed');

/** Peers without sockets. Some of them stand still, and with some packets are lost. */
class Network implements PeerConnector {
  readonly events = new EventQueue();
  readonly clock = {
    nowNs: () => this.events.nowNs,
    wakeAt: (timeNs: number, wake: () => void) => this.events.at(timeNs, wake),
  };
  /** Addresses whose processes stand still: nothing is refused, and nothing is answered. */
  readonly still = new Set<string>();
  /** Whether packets of RDMA arrive nowhere. */
  isLossy = false;
  readonly failed = new Set<string>();
  readonly attempts: string[] = [];
  open = 0;
  given = 0;

  connect(address: string, _: unknown, { timeoutMs, signal }: ConnectLimits): Promise<PeerClient> {
    this.attempts.push(address);
    return new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => reject(new RoceError('ERR_ROCE_ABORTED', 'connect was aborted')));
      if (this.still.has(address)) this.events.after(timeoutMs * MS, () => reject(new Error('no answer')));
      else this.events.after(1 * MS, () => resolve(this.#link(address)));
    });
  }

  #link(address: string): PeerClient {
    const transport = this.failed.has(address) ? 'tcp' : 'rdma';
    let onEnd = () => {};
    const ended = new Promise<void>((resolve) => {
      onEnd = resolve;
    });
    let isOpen = true;
    this.open++;
    const close = async () => {
      if (!isOpen) return;
      isOpen = false;
      this.open--;
      onEnd();
    };
    const call = (_: object, { timeoutMs }: { readonly timeoutMs: number }): Promise<object> =>
      new Promise((resolve, reject) => {
        void ended.then(() => reject(closed()));
        if (!isOpen) reject(closed());
        const isLost = this.still.has(address) || (transport === 'rdma' && this.isLossy);
        if (!isLost) this.events.after(1 * MS, () => resolve({ at: address }));
        else this.events.after(timeoutMs * MS, () => reject(new RoceError('ERR_ROCE_TIMEOUT', 'late')));
      });
    const methods = new Proxy({}, { get: () => call });
    const client = { methods, openCalls: 0, ended, close, [Symbol.asyncDispose]: close };
    Object.defineProperty(client, 'isOpen', { get: () => isOpen });
    return { client: client as never, transport };
  }

  async answers({ client }: PeerClient): Promise<boolean> {
    const call = (client.methods as never as Record<string, (request: object, options: object) => Promise<object>>)[
      'fetch'
    ];
    return call({}, { timeoutMs: PROOF_MS }).then(
      () => true,
      () => false,
    );
  }

  noteFailure(address: string): void {
    this.failed.add(address);
  }
}

const places = ['a:1', 'b:1', 'c:1', 'd:1', 'e:1'].map((address, k) => ({ node: k + 1, address }));

function start() {
  const network = new Network();
  const peers = new Peers(network.clock as never, network);
  const ask = (k: number) => peers.nodes.call(places[k], 'fence', { extent: 1, epoch: 1 }, CALL_MS);
  return { network, peers, ask };
}

describe('connections to peers', () => {
  it('end at once while they are made, and so do the calls that wait for them', async () => {
    const { network, peers, ask } = start();
    network.still.add('a:1');
    const waiting = ask(0);
    waiting.catch(() => {});
    await until(network.events, ask(1));
    const startNs = network.events.nowNs;
    await peers.close(); // Time stands still: this is at once.
    await expect(waiting).rejects.toMatchObject({ code: 'ERR_ROCE_CLOSED' });
    expect(network.events.nowNs).toBe(startNs);
    expect([peers.connected, network.open]).toEqual([0, 0]);
  });

  it('that carry nothing any more end together, and not each at the cost of a call', async () => {
    const { network, ask } = start();
    for (let k = 0; k < places.length; k++) await until(network.events, ask(k));
    network.isLossy = true;
    await until(
      network.events,
      ask(0).catch(() => {}),
    );
    const startNs = network.events.nowNs;
    await until(network.events, ask(0)); // Over TCP.
    await pass(network.events, PROOF_MS * MS + 1);
    await settle();
    for (let k = 1; k < places.length; k++) await until(network.events, ask(k));
    expect(network.events.nowNs - startNs).toBeLessThan((PROOF_MS + 50) * MS);
  });

  it('of peers that answer stay, whatever has become of another one', async () => {
    const { network, ask } = start();
    for (let k = 0; k < places.length; k++) await until(network.events, ask(k));
    network.still.add('a:1');
    await until(
      network.events,
      ask(0).catch(() => {}),
    );
    network.still.clear();
    await until(network.events, ask(0));
    await pass(network.events, 2 * PROOF_MS * MS);
    for (let k = 1; k < places.length; k++) await until(network.events, ask(k));
    expect(network.attempts).toHaveLength(places.length + 1);
    expect([...network.failed]).toEqual(['a:1']);
  });
});
