/** Peers that begin a set-up and do not complete it: how many have a slot, and that others get one. In virtual time. */

import { describe, expect, it } from 'vitest';
import { EventQueue } from '../../../packages/lab/src/sim/event-queue.js';
import { virtualClock } from '../../../packages/lab/src/sim/virtual-clock.js';
import type { ControlChannel } from '../../../src/cm/control-channel.js';
import { IpAddress } from '../../../src/packet/address.js';
import { SetUpSlots } from '../../../src/storage-rpc/live/set-up-slots.js';
import { pass } from '../../support/virtual-time.js';

const MS = 1e6;
const LIMITS = { total: 8, perAddress: 3 };
const HONEST = '192.0.2.1';

/** A control connection, as far as slots are concerned. */
class Peer {
  readonly remoteAddress: IpAddress;
  isOpen = true;
  isDone = false;
  hasSlot = false;
  #close: () => void = () => {};
  readonly closed = new Promise<void>((resolve) => {
    this.#close = resolve;
  });

  constructor(address: string) {
    this.remoteAddress = IpAddress.parse(address);
  }

  abort(): void {
    this.isOpen = false;
    this.#close();
  }
}

class World {
  readonly events = new EventQueue();
  readonly slots = new SetUpSlots(virtualClock(this.events), LIMITS);

  /** Begins set-ups of an address. */
  begin(address: string, count: number): Peer[] {
    return Array.from({ length: count }, () => {
      const peer = new Peer(address);
      this.slots
        .take(peer as unknown as ControlChannel, () => peer.isDone)
        .then(
          (free) => {
            peer.hasSlot = true;
            void peer.closed.then(free);
          },
          () => {},
        );
      return peer;
    });
  }

  pass(ms: number): Promise<void> {
    return pass(this.events, ms * MS);
  }
}

const withSlot = (peers: readonly Peer[]) => peers.filter(({ hasSlot, isOpen }) => hasSlot && isOpen).length;

describe('slots of set-ups', () => {
  it('are few for an address, and few in total', async () => {
    const world = new World();
    const first = world.begin('192.0.2.66', 10);
    await world.pass(1);
    expect(withSlot(first)).toBe(LIMITS.perAddress);
    for (const last of [67, 68, 69]) world.begin(`192.0.2.${last}`, 10);
    await world.pass(1);
    expect(world.slots.taken).toBe(LIMITS.total);
  });

  it('go from peers that make no progress to peers that wait, of the same address and of others', async () => {
    const world = new World();
    for (const last of [66, 67, 68]) world.begin(`192.0.2.${last}`, 5);
    await world.pass(1);
    const honest = world.begin(HONEST, 1);
    await world.pass(900);
    expect(withSlot(honest)).toBe(0); // A peer may take a second for its set-up.
    await world.pass(200);
    expect(withSlot(honest)).toBe(1);
    const neighbour = world.begin('192.0.2.66', 1);
    neighbour[0].isDone = true;
    await world.pass(5000);
    expect(neighbour[0].hasSlot).toBe(true);
  });

  it('are free again once a peer has completed its set-up, or has left', async () => {
    const world = new World();
    const begun = world.begin(HONEST, 5);
    await world.pass(1);
    expect(begun.map(({ hasSlot }) => hasSlot)).toEqual([true, true, true, false, false]);
    begun[0].isDone = true;
    begun[1].abort();
    await world.pass(200);
    expect(begun.map(({ hasSlot, isOpen }) => hasSlot && isOpen)).toEqual([true, false, true, true, true]);
  });

  it('are not given to a peer that has left while it waited', async () => {
    const world = new World();
    const begun = world.begin(HONEST, 4);
    await world.pass(1);
    begun[3].abort();
    for (const peer of begun) peer.abort();
    await world.pass(200);
    expect([begun[3].hasSlot, world.slots.taken]).toEqual([false, 0]);
  });
});
